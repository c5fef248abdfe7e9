"""Forged evidence, and evidence of a test double, fails its gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.judged_rows import judge_checks, judge_rows, scoring
from rc1_lib.calibration.overclar_ablation import ABLATION
from rc1_lib.calibration.stages import is_due
from rc1_lib.calibration.weights_file import note_refusal
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import evaluate
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import FileState, read_json, write_json
from tests.conftest import SMALL


@pytest.fixture
def run(fresh_copy: Callable[..., Run]) -> Run:
    return fresh_copy()


def ablation(run: Run) -> Path:
    (path,) = run.workspace.path("reports").glob("overclar_ablation_*.json")
    return path


def failures(run: Run, gate: str) -> set[str]:
    return {check.name for check in evaluate(gate, Evidence(run), 1).failures}


def test_ablation_of_these_weights_passes(run: Run) -> None:
    assert evaluate("overclar_ablation", Evidence(run), 1).status is Status.PASSED
    assert ABLATION.state(run) is FileState.FRESH


def test_edited_ablation_fails_and_is_due_again(run: Run) -> None:
    body = read_json(ablation(run))
    next(check for check in body["gate"]["checks"] if check["name"] == "rate drop, %")["value"] = 99.0
    ablation(run).write_bytes(orjson.dumps(body))
    assert failures(run, "overclar_ablation") == {"report"}
    assert ABLATION.state(run) is not FileState.FRESH
    assert is_due(run, "auto")


@pytest.mark.parametrize("models", [["m-1", "rc1-test-double-2"], None])
def test_made_up_scores_fail_in_prod(run: Run, models: Any) -> None:
    for path in (ablation(run), *run.workspace.path("reports").glob("calibration_report_*.json")):
        body = read_json(path)
        write_json(path, {**body, "scoring": {**body["scoring"], "models": models}})
    prod = open_run(profile="prod", workspace=run.workspace.root)
    assert "scores are made up" in failures(prod, "weights")


@pytest.mark.parametrize("damage", [{"judge": "abc"}, {"gate": 7}])
def test_damaged_report_fails_the_gate_without_a_fault(run: Run, damage: dict[str, Any]) -> None:
    (path,) = run.workspace.path("reports").glob("calibration_report_*.json")
    write_json(path, {**read_json(path), **damage})
    assert evaluate("weights", Evidence(run), 1).status is Status.FAILED


@pytest.mark.parametrize(
    "override",
    ["judge.sampling.temperature=0.1", "gates.stability.max_variance=0.5"],
)  # fmt: skip
def test_setting_that_affects_the_scores_makes_weights_and_ablation_stale(run: Run, override: str) -> None:
    other = open_run(profile="local", workspace=run.workspace.root, overrides=(*SMALL, override))
    assert WEIGHTS.state(other) is FileState.STALE
    assert ABLATION.state(other) is not FileState.FRESH


def test_later_failed_calibration_makes_the_weights_stale(run: Run) -> None:
    assert WEIGHTS.state(run) is FileState.FRESH
    note_refusal(run)
    assert WEIGHTS.state(run) is FileState.STALE
    assert "file" in failures(run, "weights")
    assert is_due(run, "auto")


def test_scores_of_two_model_versions_fail(run: Run, evidence: Evidence) -> None:
    judged = judge_rows(run, evidence.rows("shadow").head(2))
    assert all(check.passed for check in judge_checks(run, judged.models))
    mixed = replace(judged, rows=judged.rows.with_columns(models=pl.lit(["a-1", "a-2"])))
    failed = [check.name for check in judge_checks(run, mixed.models) if not check.passed]
    assert failed == ["model versions"]
    assert scoring(run, mixed)["models"] == ["a-1", "a-2"]
