"""The whole calibration: weights change only when every stage passes, and a kill leaves no partial state."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.judged_rows import dimensions
from rc1_lib.calibration.stages import (
    STAGES,
    Stage,
    Weights,
    evaluate_here,
    is_due,
    run_stages,
)
from rc1_lib.calibration.weight_calib import calibration_rows
from rc1_lib.calibration.weights_file import adopt, read_weights
from rc1_lib.errors import ConfigError
from rc1_lib.evidence import Evidence
from rc1_lib.gate_report import GateReport
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.preflight.preconditions import check_can_calibrate
from rc1_lib.records import Check, GateResult, Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import FileState, read_json
from tests.conftest import SMALL
from tests.forks import Fork, this_interpreter

# The shared pool has the first sample of each dialogue stored; intervals do not affect the verdicts.
QUICK = (
    "judge.samples=1", "calibration.n=100", "calibration.boot=20", "gates.shared.resamples=20",
)  # fmt: skip
NAMES = [stage.name for stage in STAGES]


def again(root: Path, *overrides: str) -> Run:
    return open_run(profile="local", workspace=root, overrides=(*SMALL, *overrides))


def files(run: Run, pattern: str = "reports/*.json") -> dict[str, bytes]:
    """The files' bytes, by name."""
    root = run.workspace.root
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.glob(pattern))}


def test_finished_dialogues_as_source_cannot_be_calibrated_on(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.touch()
    with pytest.raises(ConfigError, match=r"rows\.jsonl: .*`rc1 build-pool`"):
        check_can_calibrate(again(tmp_path, f"sources.use={rows}"))
    check_can_calibrate(again(tmp_path, f"sources.use={tmp_path}"))
    check_can_calibrate(again(tmp_path))


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("gates.reward_hacking.prompts=14", "expected at least 15,"),
        ("gates.reward_hacking.own=[nowhere.py]", "nowhere.py: Python file not found"),
    ],
)
def test_attack_that_could_not_give_a_verdict_is_rejected_before_it_costs(
    override: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_can_calibrate(again(tmp_path, override))


def ended(done: list[GateReport]) -> dict[str, str]:
    return {outcome.gate.name: outcome.gate.status.value for outcome in done}


def asked(done: list[GateReport]) -> tuple[int, int]:
    """Judge calls, and replies taken from the store."""
    effort = [outcome.body["scoring"] for outcome in done]
    return int(sum(one["calls"] for one in effort)), int(sum(one["replayed"] for one in effort))


def weights_and_manifest(run: Run) -> dict[str, bytes]:
    written = files(run, "reports/rc1/weights.manifest.json") | files(run, "reports/rc1/weights.sha256")
    return files(run, "configs/*") | written


def weights_pass(before: Run) -> bool:
    """Whether the weights pass under the configuration that they were fitted with."""
    return evaluate("weights", Evidence(before), 1).status is Status.PASSED


def test_weights_that_fail_their_gate_are_kept_in_a_refused_report(built: Run, tmp_path: Path) -> None:
    """On a copy with weights and the judge's stored replies."""
    root = shutil.copytree(built.workspace.root, tmp_path / "workspace")
    run = again(root, *QUICK, "gates.calibration.min_improve_pct=1000")
    weights, before = weights_and_manifest(run), files(run)
    done = run_stages(run, evaluate_here)
    assert ended(done) == {"shadow_baseline": "passed", "calibration": "failed"}
    assert asked(done) == (0, run.config.shadow.n + run.config.calibration.n)
    assert [check.name for check in done[-1].gate.failures] == ["rank correlation gained, per cent"]
    # The rejected weights are in a report with a name that says so; no later stage ran.
    report = read_json(run.workspace.path(done[-1].report))
    assert done[-1].report.startswith("reports/calibration_report_")
    assert done[-1].report.endswith("_refused.json")
    assert report["pass"] is False
    assert sum(report["weights"].values()) == pytest.approx(1.0)
    after = files(run)
    assert set(after) - set(before) == {done[-1].report}
    assert {name for name in before if after[name] != before[name]} == {"reports/shadow_run_baseline.json"}
    assert weights_and_manifest(run) == weights
    assert weights_pass(again(run.workspace.root))


@pytest.mark.parametrize("failing", NAMES)
def test_failed_stage_stops_the_calibration_and_adopts_nothing(built: Run, failing: str) -> None:
    """For every stage, with made-up verdicts."""
    run, order = again(built.workspace.root), list[str]()

    def judged(_: Run, stage: Stage, found: Weights | None) -> GateReport:
        order.append(stage.name)
        assert (found is not None) == ("calibration" in order[:-1])
        passed = stage.name != failing
        gate = GateResult(stage.name, checks=(Check("any", int(passed), ">=", 1, passed),))
        return GateReport(gate, "a report", {"weights": {"answered": 1.0}})

    def adopted(*_: object) -> None:
        raise AssertionError("weights were adopted after a failed stage")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rc1_lib.calibration.stages.note_refusal", lambda _: None)
        assert [one.passed for one in run_stages(run, judged, adopt=adopted)] == [name != failing for name in order]
    assert order == NAMES[: NAMES.index(failing) + 1]


def test_calibration_excludes_the_shadow_set(built: Run) -> None:
    """It excludes its rows and other dialogues about its questions."""
    evidence, rows = Evidence(built), calibration_rows(built)
    assert rows.height == built.config.calibration.n
    assert rows["id"].n_unique() == rows.height
    for held_out in ("shadow", "takes"):
        held = evidence.rows(held_out)
        assert held.height
        assert not set(rows["source_id"]) & set(held["source_id"])
        assert not set(rows["question"]) & set(held["question"])
    assert calibration_rows(built).equals(rows)
    other = again(built.workspace.root, "calibration.seed=43")
    assert set(calibration_rows(other)["id"]) != set(rows["id"])


# ---- kill -9 ----


def killed_before_renaming(workspace: str, moment: str, report: str, *overrides: str) -> None:
    """Adopt what `report` holds, in a process that is killed before it renames to `moment`."""

    def kill(event: str, arguments: tuple[object, ...]) -> None:
        if event == "os.rename" and os.path.basename(str(arguments[1])) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    run = open_run(profile="local", workspace=Path(workspace), overrides=overrides)
    sys.addaudithook(kill)
    adopt(run, read_json(run.workspace.path(report))["weights"], report)


def _start(run: Run, moment: str, report: str) -> Fork:
    forks = this_interpreter(run.workspace.root.with_name("forks"))
    where = f"{__name__}.killed_before_renaming"
    return forks.start(where, run.workspace.root, moment, report, *run.overrides)


def _assert_complete(run: Run) -> None:
    """Every report and picture is complete."""
    for body in (files(run) | files(run, "configs/*.json") | files(run, "reports/rc1/*.json")).values():
        orjson.loads(body)
    for picture in files(run, "reports/plots/*.png").values():
        assert picture.startswith(b"\x89PNG") and picture.endswith(b"IEND\xaeB`\x82")


@pytest.mark.parametrize(
    ("moment", "state"),
    [
        ("weights.manifest.json", FileState.STALE),
        ("weights.json", FileState.INTERRUPTED),
        ("weights.sha256", FileState.STALE),
    ],
)
def test_kill_while_adopting_leaves_the_old_or_the_new_weights(
    fresh_copy: Callable[..., Run], moment: str, state: FileState
) -> None:
    """A write has three renames; the test writes the report of the new weights itself."""
    run = fresh_copy("calibration.seed=43")
    old = read_json(run.workspace.path(run.config.weights))
    body = read_json(run.workspace.path(old["report"]["path"]))
    new = {**body["weights"], "grounded": body["weights"]["grounded"] - 0.01, "restrained": 0.01}
    report = "reports/calibration_report_new.json"
    run.workspace.path(report).write_bytes(orjson.dumps({**body, "weights": new}))

    assert _start(run, moment, report).wait() == -signal.SIGKILL
    _assert_complete(run)
    assert read_weights(run, dimensions(run)) == (new if moment == "weights.sha256" else old["weights"])
    assert WEIGHTS.state(run) is state
    assert is_due(run, "auto")

    adopt(run, new, report)
    assert read_weights(run, dimensions(run)) == new
    assert WEIGHTS.state(run) is FileState.FRESH
    assert not [path for path in run.workspace.path("configs").iterdir() if path.name != "weights.json"]
