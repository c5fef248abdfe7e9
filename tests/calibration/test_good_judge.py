"""A judge that already predicts success needs no gain from calibration, and a failed gain comes with advice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rc1_lib.calibration import judged_rows
from rc1_lib.calibration.shadow_run import CALIBRATED, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.judge.results import Judged
from rc1_lib.records import Check, GateResult
from rc1_lib.run import Run
from tests.calibration.simulated_judge import Simulated

PUBLISHED = "overclar.alpha=0.07"
SKILLED = Simulated(0.98)
GAIN, ERROR = "rank correlation gained, per cent", "mean absolute error lowered, per cent"
BETTER = "corr_improve_pct"


def check(gate: GateResult, name: str) -> Check:
    (found,) = (one for one in gate.checks if one.name == name)
    return found


def gain(gate: GateResult, name: str) -> tuple[bool, float]:
    """Whether the check of the gain passed, and its threshold."""
    found = check(gate, name)
    assert isinstance(found.threshold, float)
    return found.passed, found.threshold


def test_skilled_judge_passes_although_calibration_gains_little(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy(PUBLISHED)
    found = weight_calib(run, judge=SKILLED)
    assert found.gate.failures == ()
    assert gain(found.gate, GAIN) == (True, -5.0)
    gained = found.body["calibration"]["improve_pct_vs_old"]
    assert gained < run.config.gates.calibration.min_improve_pct, "otherwise this test is void"
    compared = shadow_run(run, CALIBRATED, found.body["weights"], judge=SKILLED)
    assert gain(compared.gate, BETTER) == (True, -5.0)
    assert compared.body["auc_old"] > 0.95 and compared.body["auc_new"] > 0.95
    wanted = compared.body["corr_to_success_old"] * (1 + run.config.gates.shadow_run.min_improve_pct / 100)
    solved = compared.body["solved"] / compared.body["rows"]
    assert wanted > math.sqrt(3 * solved * (1 - solved)), "no ranking can reach the usual threshold"


def test_rubric_must_gain_from_calibration(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    found = weight_calib(run)
    assert gain(found.gate, GAIN) == (True, 8.0)
    old = run.config.reward.old_weights
    compared = shadow_run(run, CALIBRATED, {**dict.fromkeys(found.body["weights"], 0.0), **old})
    assert gain(compared.gate, BETTER) == (False, 10.0)


def test_identical_criteria_cannot_gain_and_the_advice_says_so(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one grade for all seven criteria and no rules, every set of weights gives the same score."""
    monkeypatch.setattr(judged_rows, "RULES", {})
    run = fresh_copy()

    def alike(run: Run, rows: pl.DataFrame, **options: Any) -> Judged:
        judged = Simulated(0.8)(run, rows, **options)
        one = [pl.col("answered").alias(name) for name in run.config.reward.old_weights]
        return replace(judged, rows=judged.rows.with_columns(one))

    failed = {one.name: one.advice for one in weight_calib(run, judge=alike).gate.failures}
    assert set(failed) == {GAIN, ERROR}
    assert all("would be 0, so the criteria cannot predict it" in advice for advice in failed.values())
    assert "a gain of 8 % takes about 0." in failed[GAIN]
