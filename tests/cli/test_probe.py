"""`probe-scorer` with an empty workspace and with a shadow set."""

from __future__ import annotations

import json
from pathlib import Path

from tests.judge_server import Behaviour, FaultKind, running

from .conftest import SMALL, Rc1, judge_at

REPORT = "reports/rc1/probe_scorer.json"


def test_probe_of_a_live_judge_needs_only_an_empty_workspace(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero")) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--live", *judge_at(server))
        assert server.stats().requests == 8 * 3
        host = server.base_url.split("/")[2]
    assert done.code == 0, done.out + done.err
    assert f"asked about 8 of RC1's own dialogues: openai at {host}, model rc1-test-double-1" in done.out
    assert "pass: judge openai" in done.out.splitlines()
    assert json.loads((tmp_path / REPORT).read_text())["asked_about"] == "RC1's own dialogues"


def test_failing_judge_is_reported_in_the_last_five_lines(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.SERVER_ERROR: 1.0})) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--n", 2, *judge_at(server))
    assert done.code == 2
    assert "fail: judge openai" in done.out.splitlines()[-5:]


def test_probe_that_asks_nobody_does_not_pass(rc1: Rc1, workspace: Path) -> None:
    done = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4", "--reward", "verified")
    assert done.code == 2 and "nobody was asked" in done.err


def test_probe_uses_an_existing_shadow_set(rc1: Rc1, workspace: Path) -> None:
    done = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4")
    assert (done.code, "asked about 4 of data/shadow_eval_245.jsonl" in done.out) == (0, True)
    (workspace / "data/shadow_eval_245.jsonl").write_text("{\n")
    damaged = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4")
    assert damaged.code == 2, "a damaged shadow set is not skipped"
