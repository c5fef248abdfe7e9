"""A judge that knows which dialogues are right is not refused for leaving no weights anything to gain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rc1_lib.calibration.judged_rows import JudgedRows, judge_rows
from rc1_lib.calibration.shadow_run import CALIBRATED, shadow_run
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.records import GateResult
from rc1_lib.run import Run

STRICT = ("gates.shadow_run.enough_auc=1.0", "gates.calibration.enough_auc=1.0")
"""As if it were not asked how much of success the new score knows."""


@pytest.fixture
def graded_by_one_who_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The local rubric's grades, but for those that hang on what is right and on what was missing."""

    def graded(run: Run, rows: pl.DataFrame, **options: Any) -> JudgedRows:
        judged = judge_rows(run, rows, **options)
        # Nobody is always right, and no judge's grades are but two.
        mistaken, shade = pl.col("id").hash(3) % 50 == 0, pl.col("id").hash(7) % 1000 / 10_000
        right = (pl.col("solved") & ~pl.col("lucky")) != mistaken
        unasked = pl.col("needs_clarification") & (pl.col("clarifications") == 0)
        frame = judged.frame.with_columns(
            answered=pl.when(unasked).then(0.4 * pl.col("answered")).otherwise("answered"),
            grounded=pl.when(right).then(0.9).otherwise(0.2) + shade,
            reasoned=pl.when(right).then(0.8).otherwise(0.3) + shade.reverse(),
        )
        return replace(judged, frame=frame)

    for stage in ("weight_calib", "shadow_run"):
        monkeypatch.setattr(f"rc1_lib.calibration.{stage}.judge_rows", graded)


def gain(gate: GateResult, check: str) -> tuple[bool, float]:
    """Whether the check of the gain passed, and what was asked for."""
    (found,) = (one for one in gate.checks if one.name == check)
    assert isinstance(found.threshold, float)
    return found.passed, found.threshold


@pytest.mark.usefixtures("graded_by_one_who_knows")
def test_a_judge_who_knows_what_is_right_leaves_nothing_to_gain_and_is_taken(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    found = weight_calib(run)
    assert found.gate.failures == ()
    assert gain(found.gate, "rank correlation gained, per cent") == (True, -5.0)
    gained = found.body["calibration"]["improve_pct_vs_old"]
    assert gained < run.config.gates.calibration.min_improve_pct, "else this test shows nothing"
    compared = shadow_run(run, CALIBRATED, found.body["weights"])
    assert gain(compared.gate, "corr_improve_pct") == (True, -5.0)
    assert compared.body["auc_old"] > 0.95 and compared.body["auc_new"] > 0.95
    wanted = compared.body["corr_to_success_old"] * (1 + run.config.gates.shadow_run.min_improve_pct / 100)
    solved = compared.body["solved"] / compared.body["rows"]
    assert wanted > 1.02 * math.sqrt(3 * solved * (1 - solved)), "no order of so many solved ones reaches that"


@pytest.mark.long
@pytest.mark.usefixtures("graded_by_one_who_knows")
def test_it_is_how_much_the_score_knows_that_spares_it_the_gain(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy(*STRICT)
    found = weight_calib(run)
    assert gain(found.gate, "rank correlation gained, per cent") == (False, 8.0)
    assert gain(shadow_run(run, CALIBRATED, found.body["weights"]).gate, "corr_improve_pct") == (False, 10.0)


def test_the_local_rubric_knows_too_little_to_be_spared(fresh_copy: Callable[..., Run]) -> None:
    run = fresh_copy()
    found = weight_calib(run)
    assert gain(found.gate, "rank correlation gained, per cent") == (True, 8.0)
    old = run.config.reward.old_weights
    compared = shadow_run(run, CALIBRATED, {**dict.fromkeys(found.body["weights"], 0.0), **old})
    assert gain(compared.gate, "corr_improve_pct") == (False, 10.0)
