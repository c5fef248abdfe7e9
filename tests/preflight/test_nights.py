"""The history of nightly runs has each run once, however it ended, and survives kills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from rc1_lib.checks import at_least, info
from rc1_lib.preflight.nights import NIGHTS, Night, NightOutcome
from rc1_lib.records import GateResult
from rc1_lib.workspace.artifacts import Workspace

GATES = {
    "round1": [
        GateResult("diversity", (at_least("distinct-2", 0.7, 0.65, "write more templates"), info("rows", 5))),
        GateResult("judge_probe", error="no answer"),
    ]
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def keep(workspace: Workspace, name: str, **given: Any) -> None:
    with Night(name, workspace, **given) as night:
        night.ended(NightOutcome.FAILED, f"of {name}", GATES)


def kept(workspace: Workspace) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in workspace.path(NIGHTS).read_bytes().splitlines()]


def verdicts(workspace: Workspace) -> list[str]:
    return [night["verdict"] for night in kept(workspace)]


def test_nightly_run_is_recorded_with_status_and_figures_of_each_gate(workspace: Workspace) -> None:
    keep(workspace, "one")
    (night,) = kept(workspace)
    assert (night["id"], night["outcome"], night["verdict"]) == ("one", "failed", "of one")
    assert night["gates"] == {
        "round1": {
            "diversity": {"status": "passed", "figures": {"distinct-2": 0.7}},
            "judge_probe": {"status": "error", "figures": {}},
        }
    }


def test_nightly_run_is_recorded_once(workspace: Workspace) -> None:
    for name in ("one", "two", "one"):
        keep(workspace, name)
    assert verdicts(workspace) == ["of one", "of two"]


def test_error_of_a_nightly_run_is_recorded_and_raised(workspace: Workspace) -> None:
    with pytest.raises(OSError, match="disk full"), Night("one", workspace):
        raise OSError("disk full")
    with pytest.raises(OSError, match="disk full"), Night("two", workspace) as night:
        night.ended(NightOutcome.FAILED, "a gate failed", GATES)
        raise OSError("disk full")
    first, second = kept(workspace)
    assert (first["outcome"], first["verdict"]) == ("error", "disk full")
    assert (second["outcome"], second["verdict"]) == ("error", "a gate failed; then disk full")
    assert len(second["gates"]["round1"]) == 2


def test_torn_last_line_is_removed_by_the_next_night(workspace: Workspace) -> None:
    keep(workspace, "one")
    path = workspace.path(NIGHTS)
    whole = path.read_bytes()
    path.write_bytes(whole + whole.rstrip()[:40])
    keep(workspace, "two")
    assert verdicts(workspace) == ["of one", "of two"]
    assert path.read_bytes().startswith(whole + b'{"id":"two"')
