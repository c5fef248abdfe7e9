"""The gate on the weights file passes only for the exact weights of a passed calibration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.judged_rows import dimensions
from rc1_lib.calibration.stages import is_due
from rc1_lib.calibration.weights_file import NoWeightsError, read_weights
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.provenance.derived import Build
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import FileState, read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.conftest import SMALL

OF_REPORT, NAMED = "weights are those of the report", "the report is the one named"
CALIBRATED, PASSED = "calibrated", "the calibration passed"
JUDGE, OLD = "calibrated for this judge", "old weights are those of the report"
FILE = "file"
"""Also fails whenever the file differs from what its calibration wrote, or would write today."""
NO_REPORT = {CALIBRATED, NAMED, OF_REPORT, PASSED, JUDGE, OLD}
OTHER_OLD = (
    "reward.old_weights={answered: 0.3, grounded: 0.1, well_formed: 0.15, economical: 0.15, reasoned: 0.1, "
    "concise: 0.1, restrained: 0.1}"
)


@pytest.fixture
def run(fresh_copy: Callable[..., Run]) -> Run:
    return fresh_copy()


def again(run: Run, *overrides: str) -> Run:
    """The same workspace with another configuration."""
    return open_run(profile="local", workspace=run.workspace.root, overrides=(*SMALL, *overrides))


def place(run: Run) -> Path:
    return run.workspace.path(run.config.weights)


def content(run: Run) -> Any:
    return read_json(place(run))


def report(run: Run) -> Path:
    return run.workspace.path(content(run)["report"]["path"])


def name_report(run: Run, path: str) -> None:
    """Name the file at `path` as the report of the weights, with its current hash."""
    named = {"path": path, "sha256": sha256_file(run.workspace.path(path))}
    write_json(place(run), {**content(run), "report": named})


def gate_of(run: Run) -> GateResult:
    return evaluate("weights", Evidence(run), 1)


def failed(run: Run) -> set[str]:
    result = gate_of(run)
    assert all(check.advice for check in result.failures)
    assert result.status is (Status.FAILED if result.failures else Status.PASSED), result.error
    return {check.name for check in result.failures}


def error_of(run: Run) -> str:
    result = gate_of(run)
    assert result.status is Status.ERROR
    return result.error


def change_a_digit(path: Path, after: bytes) -> None:
    """Change the fifth decimal of the number after `after`."""
    body = bytearray(path.read_bytes())
    digit = body.index(b".", body.index(after)) + 5
    assert chr(body[digit]).isdigit()
    body[digit] = ord("1") if body[digit] != ord("1") else ord("2")
    path.write_bytes(body)


def test_weights_of_a_passed_calibration_pass_and_are_fresh(run: Run) -> None:
    assert failed(run) == set()
    assert WEIGHTS.state(run) is FileState.FRESH
    assert not is_due(run, "auto")
    assert read_weights(run, dimensions(run)) == read_json(report(run))["weights"]


def test_one_edited_digit_fails(run: Run) -> None:
    change_a_digit(place(run), b'"grounded"')
    assert failed(run) >= {OF_REPORT, FILE}
    check = next(check for check in gate_of(run).failures if check.name == OF_REPORT)
    assert "edited the weights by hand" in check.advice
    assert WEIGHTS.state(run) is FileState.ALTERED


def test_edited_weights_with_sum_1_fail(run: Run) -> None:
    body = content(run)
    body["weights"] |= {"grounded": body["weights"]["grounded"] - 0.01, "restrained": 0.01}
    write_json(place(run), body)
    assert failed(run) == {OF_REPORT, FILE}


def test_edited_report_fails(run: Run) -> None:
    change_a_digit(report(run), b'"improve_pct_vs_old"')
    assert failed(run) == {NAMED}


def test_report_and_weights_edited_together_fail(run: Run) -> None:
    for path in (place(run), report(run)):
        body = read_json(path)
        body["weights"] |= {"grounded": body["weights"]["grounded"] - 0.01, "restrained": 0.01}
        write_json(path, body)
    assert failed(run) == {NAMED, FILE}
    name_report(run, content(run)["report"]["path"])
    assert failed(run) == {FILE}
    assert WEIGHTS.state(run) is FileState.ALTERED


@pytest.mark.parametrize("damage", ["removed", "no JSON"])
def test_missing_or_unreadable_report_fails(run: Run, damage: str) -> None:
    path = report(run)
    path.unlink()
    if damage == "no JSON":
        path.write_text("[1, 2")
    assert failed(run) == NO_REPORT
    check = next(check for check in gate_of(run).failures if check.name == CALIBRATED)
    assert "no calibration report supports them" in check.advice


def test_weights_with_a_report_without_a_verdict_fail(run: Run) -> None:
    body = read_json(report(run))
    for gate in (None, {}, {"name": "calibration"}, {**body["gate"], "checks": []}, {**body["gate"], "error": "x"}):
        write_json(run.workspace.path("reports/bare.json"), {**body, "gate": gate})
        name_report(run, "reports/bare.json")
        assert failed(run) == {FILE}, "RC1 wrote no such weights"


def test_weights_of_another_judge_fail_and_are_stale(run: Run) -> None:
    other = again(run, "judge.provider=openai", "judge.model=gpt-9")
    assert failed(other) == {JUDGE, FILE}
    assert WEIGHTS.state(other) is FileState.STALE


@pytest.mark.parametrize(
    ("change", "checks"),
    [
        ({"kindness": 0.0}, {"unknown dimensions"}),
        ({"restrained": True}, {"every weight is a number"}),
        ({"restrained": -0.1, "concise": 0.1}, {"smallest weight"}),
        ({"obtained": 0.6}, {"largest weight", "sum"}),
    ],
)
def test_unusable_weights_fail(run: Run, change: dict[str, Any], checks: set[str]) -> None:
    body = content(run)
    write_json(place(run), {**body, "weights": {**body["weights"], **change}})
    assert failed(run) == {*checks, OF_REPORT, FILE}


def test_missing_weights_file_is_an_error(run: Run) -> None:
    place(run).unlink()
    assert "weights.json: file not found" in error_of(run)
    assert "rc1 calibrate" in error_of(run)
    with pytest.raises(NoWeightsError, match="`rc1 weight-calib`"):
        read_weights(run, dimensions(run))
    assert WEIGHTS.state(run) is FileState.MISSING
    assert is_due(run, "auto")


# ---- fresh, stale and due ----


@pytest.mark.parametrize("override", ["calibration.n=299", "overclar.alpha=0.08", OTHER_OLD, "judge.samples=2"])
def test_weights_of_other_settings_are_stale_and_due(run: Run, override: str) -> None:
    changed = again(run, override)
    assert WEIGHTS.state(changed) is FileState.STALE
    assert FILE in failed(changed)
    assert is_due(changed, "auto")
    assert not is_due(changed, "never")


def test_weights_stay_fresh_when_unrelated_settings_change(run: Run) -> None:
    assert WEIGHTS.state(again(run, "gates.shadow_run.min_spearman=0.8", "ticket.ttl_hours=1")) is FileState.FRESH


@pytest.mark.parametrize("damage", ["altered", "foreign"])
def test_foreign_or_altered_weights_are_overwritten_only_with_build_always(run: Run, damage: str) -> None:
    if damage == "altered":
        change_a_digit(place(run), b'"grounded"')
    else:
        run.workspace.manifest_path(run.config.weights).unlink()
    assert WEIGHTS.state(run).value == damage
    due: dict[Build, bool] = {build: is_due(run, build) for build in ("auto", "never", "always")}
    assert due == {"auto": False, "never": False, "always": True}
    assert not is_due(again(run, "calibration.l2=0.2"), "auto")
