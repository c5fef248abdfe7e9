"""A judge that grades well is not refused for it, and one that is refused learns why."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rc1_lib.calibration.judged_rows import JudgedRows
from rc1_lib.calibration.shadow_run import CALIBRATED, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.records import Check, GateResult
from rc1_lib.run import Run
from tests.calibration.simulated_judge import Simulated

STRICT = ("gates.shared.enough_auc=1.0",)
"""As if it were not asked how much of success the new score knows."""
PUBLISHED = "overclar.alpha=0.07"
KNOWS = Simulated(0.98)
GAIN, ERROR = "rank correlation gained, per cent", "mean absolute error lowered, per cent"
BETTER = "corr_improve_pct"


def check(gate: GateResult, name: str) -> Check:
    (found,) = (one for one in gate.checks if one.name == name)
    return found


def gain(gate: GateResult, name: str) -> tuple[bool, float]:
    """Whether the check of the gain passed, and what was asked for."""
    found = check(gate, name)
    assert isinstance(found.threshold, float)
    return found.passed, found.threshold


def test_a_judge_who_knows_what_is_right_leaves_nothing_to_gain_and_is_taken(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy(PUBLISHED)
    found = weight_calib(run, judge=KNOWS)
    assert found.gate.failures == ()
    assert gain(found.gate, GAIN) == (True, -5.0)
    gained = found.body["calibration"]["improve_pct_vs_old"]
    assert gained < run.config.gates.calibration.min_improve_pct, "else this test shows nothing"
    compared = shadow_run(run, CALIBRATED, found.body["weights"], judge=KNOWS)
    assert gain(compared.gate, BETTER) == (True, -5.0)
    assert compared.body["auc_old"] > 0.95 and compared.body["auc_new"] > 0.95
    wanted = compared.body["corr_to_success_old"] * (1 + run.config.gates.shadow_run.min_improve_pct / 100)
    solved = compared.body["solved"] / compared.body["rows"]
    assert wanted > math.sqrt(3 * solved * (1 - solved)), "no order of so many solved ones reaches that"


@pytest.mark.long
def test_it_is_how_much_the_score_knows_that_spares_it_the_gain(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy(PUBLISHED, *STRICT)
    found = weight_calib(run, judge=KNOWS)
    assert gain(found.gate, GAIN) == (False, 8.0)
    compared = shadow_run(run, CALIBRATED, found.body["weights"], judge=KNOWS)
    assert gain(compared.gate, BETTER) == (False, 10.0)
    assert "takes more than all of them" in check(compared.gate, BETTER).advice


def test_the_local_rubric_knows_too_little_to_be_spared(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    found = weight_calib(run)
    assert gain(found.gate, GAIN) == (True, 8.0)
    old = run.config.reward.old_weights
    compared = shadow_run(run, CALIBRATED, {**dict.fromkeys(found.body["weights"], 0.0), **old})
    assert gain(compared.gate, BETTER) == (False, 10.0)


def test_a_high_price_of_questions_is_named_where_it_hides_what_the_score_knows(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy("overclar.alpha=0.5")
    weights = weight_calib(run, judge=KNOWS).body["weights"]
    found = check(shadow_run(run, CALIBRATED, weights, judge=KNOWS).gate, BETTER)
    assert not found.passed and "the penalty on needless questions is the cause" in found.advice


def test_dimensions_that_all_know_the_same_have_no_weights_that_gain(fresh_copy: Callable[..., Run]) -> None:
    """One grade for all seven, and no rule beside them: whatever the weights, the score is the same."""
    run = fresh_copy("reward.rules=[]")

    def alike(run: Run, rows: pl.DataFrame, **options: Any) -> JudgedRows:
        judged = Simulated(0.8)(run, rows, **options)
        one = [pl.col("answered").alias(name) for name in run.config.reward.old_weights]
        return replace(judged, frame=judged.frame.with_columns(one))

    failed = {one.name: one.advice for one in weight_calib(run, judge=alike).gate.failures}
    assert set(failed) == {GAIN, ERROR}
    assert all("would be 0, so the criteria cannot predict it" in advice for advice in failed.values())
    assert "a gain of 8 % takes about 0." in failed[GAIN]
