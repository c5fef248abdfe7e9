"""The gates of calibration and shadow run: every check passes at its threshold, and alone fails just past it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rc1_lib.calibration.shadow_checks import baseline_gate, shadow_run_gate
from rc1_lib.calibration.weight_calib import calibration_gate
from rc1_lib.config.thresholds import CalibrationGate, ShadowRunGate
from rc1_lib.records import GateResult
from rc1_lib.reward.calibration import Calibration
from rc1_lib.reward.comparison import Comparison
from rc1_lib.reward.intervals import Interval
from tests.gates.verdicts import failed, value

SHADOW = ShadowRunGate(min_spearman=0.75, min_top10=0.70, min_improve_pct=10.0)
CALIBRATION = CalibrationGate(min_improve_pct=8.0, min_mae_drop_pct=5.0)
NAN = float("nan")
STUCK = "weighed dimensions stuck on one grade"
CONSTANT = "weighed dimensions that say the same of every dialogue"
LENGTH_OLD = "old score follows the answers' length, rank correlation"
LENGTH_NEW = "new reward follows the answers' length, rank correlation"
NO_CHANGES: Mapping[str, float] = {}
OUTCOMES = {"solved dialogues", "unsolved dialogues"}


def just_below(value: float) -> float:
    return math.nextafter(value, -math.inf)


def just_above(value: float) -> float:
    return math.nextafter(value, math.inf)


def interval(value: float, low: float | None = None, high: float | None = None) -> Interval:
    return Interval(value, value - 0.1 if low is None else low, value + 0.1 if high is None else high, 0.95, 100)


# ---- the shadow run ----

AT_THRESHOLDS = {
    "spearman": 0.75, "kendall_tau": 0.6, "top10_overlap": 0.70, "top20_overlap": 0.5, "top10_lead_kept": 0.9,
    "corr_to_success_old": 0.4,
    "corr_to_success_new": just_above(0.15), "corr_gain": 0.1, "corr_improve_pct": 10.0,
    "length_corr_old": 0.70, "length_corr_new": 0.70, "auc_old": 0.8, "auc_new": 0.9,
}  # fmt: skip


def comparison(
    figures: Mapping[str, float] = AT_THRESHOLDS,
    rows: int = 20,
    solved: int = 10,
    constant: Mapping[str, float] = NO_CHANGES,
    without_price: Mapping[str, float] = NO_CHANGES,
) -> Comparison:
    """Return figures exactly at their thresholds, except for those given."""
    values = {**AT_THRESHOLDS, **figures}
    return Comparison(
        figures={name: interval(value) for name, value in values.items()},
        with_factor=values,
        without_price={**values, **without_price},
        split={"difficulty": {}, "task": {}},
        rows=rows,
        weight=float(rows),
        solved=solved,
        constant=constant,
        repeats={},
    )


def test_a_shadow_run_at_its_thresholds_passes() -> None:
    result = shadow_run_gate(comparison(), 0.98, SHADOW)
    assert result.name == "shadow_run"
    assert failed(result) == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spearman", just_below(0.75)),
        ("top10_overlap", just_below(0.70)),
        ("corr_to_success_new", 0.15),
        ("corr_improve_pct", just_below(10.0)),
    ],
)
def test_each_figure_of_the_shadow_run_fails_alone(name: str, value: float) -> None:
    assert failed(shadow_run_gate(comparison({name: value}), 0.98, SHADOW)) == {name}
    assert failed(shadow_run_gate(comparison({name: NAN}), 0.98, SHADOW)) == {name}


@pytest.mark.parametrize(
    ("old", "low", "gain", "fails"),
    [
        (0.95, 0.95, -5.0, False),
        (0.95, 0.95, just_below(-5.0), True),
        (0.95, just_below(0.95), just_below(10.0), True),
        (0.95, NAN, just_below(10.0), True),
        (just_below(0.95), 0.95, just_below(10.0), True),
    ],
)
def test_shadow_run_requires_no_gain_if_both_scores_order_nearly_every_pair(
    old: float, low: float, gain: float, fails: bool
) -> None:
    found = comparison({"corr_improve_pct": gain, "auc_old": old, "auc_new": 0.99})
    found = replace(found, figures={**found.figures, "auc_new": interval(0.99, low, 1.0)})
    result = shadow_run_gate(found, 0.98, SHADOW)
    assert failed(result) == ({"corr_improve_pct"} if fails else set())


@pytest.mark.parametrize("value", [just_above(0.70), NAN])
def test_a_score_that_follows_the_answers_length_fails(value: float) -> None:
    old, new = comparison({"length_corr_old": value}), comparison({"length_corr_new": value})
    assert failed(shadow_run_gate(old, 0.98, SHADOW)) == failed(baseline_gate(old, 0.98)) == {LENGTH_OLD}
    assert failed(shadow_run_gate(new, 0.98, SHADOW)) == {LENGTH_NEW}
    assert failed(baseline_gate(new, 0.98)) == set()


@pytest.mark.parametrize(
    ("found", "coverage", "checks"),
    [
        (comparison(), just_below(0.98), {"scored, share"}),
        (comparison(), NAN, {"scored, share"}),
        (comparison(rows=19, solved=9), 1.0, {"solved dialogues"}),
        (comparison(rows=19, solved=10), 1.0, {"unsolved dialogues"}),
        (comparison(rows=0, solved=0), 1.0, OUTCOMES),
    ],
)
def test_too_few_scored_dialogues_fail_baseline_and_shadow_run(
    found: Comparison, coverage: float, checks: set[str]
) -> None:
    assert failed(shadow_run_gate(found, coverage, SHADOW)) == checks
    assert failed(baseline_gate(found, coverage)) == checks


def test_a_weighted_dimension_stuck_on_one_grade_fails_alone() -> None:
    result = shadow_run_gate(comparison(constant={"grounded": 0.7, "concise": 0.25, "well_formed": 1.0}), 0.98, SHADOW)
    assert failed(result) == {STUCK}
    assert value(result, STUCK) == "grounded 0.7, concise 0.25"
    assert value(result, CONSTANT) == "grounded 0.7, concise 0.25, well_formed 1"


def test_a_dimension_that_is_0_or_1_for_every_dialogue_passes() -> None:
    result = shadow_run_gate(comparison(constant={"well_formed": 1.0, "reasoned": 0.0}), 0.98, SHADOW)
    assert failed(result) == set()
    assert (value(result, STUCK), value(result, CONSTANT)) == ("none", "well_formed 1, reasoned 0")
    for score in (just_above(0.0), just_below(1.0)):
        assert failed(shadow_run_gate(comparison(constant={"grounded": score}), 0.98, SHADOW)) == {STUCK}


# ---- the calibration ----


def calibration(weights: dict[str, float] | None = None, correlation: float = 0.5, **changes: Any) -> Calibration:
    """Return figures exactly at their thresholds, except for those given."""
    chosen = weights or {"answered": 0.5, "grounded": 0.5, "settled": 0.0}
    sides = {"calibrated": correlation, "equal": 0.3, "old": 0.2}
    plain = Calibration(
        names=tuple(chosen), weights=chosen, kkt_residual=1e-9, refits_kkt_residual=1e-9, rows=100,
        unscored=0, weightless=0, constant={}, groups=50, folds=(), median_spearman=sides,
        mae=dict.fromkeys(sides, 0.2), median_auc=dict.fromkeys(sides, 0.9),
        improve_pct_vs_old=8.0, improve_pct_vs_equal=NAN, mae_drop_pct_vs_old=5.0, mae_drop_pct_vs_equal=NAN,
        unpulled={"improve_pct_vs_old": 8.0, "mae_drop_pct_vs_old": 5.0},
        intervals={
            "weight.answered": interval(0.5),
            "improve_pct_vs_old": interval(8.0, 7.9, 12.0),
            "mae_drop_pct_vs_old": interval(5.0, 5.0, 9.0),
            "improve_pct_vs_equal": interval(NAN),
            "auc": interval(0.9),
        },
    )  # fmt: skip
    return replace(plain, **changes)


def verdict(found: Calibration, coverage: float = 0.98, outcomes: tuple[int, int] | None = (10, 10)) -> GateResult:
    return calibration_gate(found, coverage, outcomes, CALIBRATION)


def test_a_calibration_at_its_thresholds_passes() -> None:
    result = verdict(calibration())
    assert result.name == "calibration"
    assert failed(result) == set()
    assert failed(verdict(calibration(correlation=just_above(0.0)))) == set()


GAIN, ERROR = "rank correlation gained, per cent", "mean absolute error lowered, per cent"


@pytest.mark.parametrize(
    ("changes", "checks"),
    [
        ({"improve_pct_vs_old": just_below(8.0)}, {GAIN}),
        ({"improve_pct_vs_old": NAN}, {GAIN}),
        ({"mae_drop_pct_vs_old": just_below(5.0)}, {ERROR}),
        ({"mae_drop_pct_vs_old": NAN}, {ERROR}),
        ({"correlation": 0.0}, {"rank correlation of the calibrated weights"}),
        ({"correlation": NAN}, {"rank correlation of the calibrated weights"}),
        ({"kkt_residual": just_above(1e-9)}, {"optimality residual"}),
        ({"kkt_residual": NAN}, {"optimality residual"}),
        ({"refits_kkt_residual": just_above(1e-9)}, {"optimality residual"}),
        ({"refits_kkt_residual": NAN}, {"optimality residual"}),  # `max` with a NaN depends on the order
        ({"weights": {"answered": 0.5, "grounded": 0.5 - 2e-6}}, {"sum is 1"}),
        ({"weights": {"answered": 0.5, "grounded": 0.4, "settled": 0.1 + 2e-6}}, {"sum is 1"}),
        ({"constant": {"grounded": 0.5}}, {STUCK}),
    ],
)
def test_each_check_of_the_calibration_fails_alone(changes: dict[str, Any], checks: set[str]) -> None:
    assert failed(verdict(calibration(**changes))) == checks


@pytest.mark.parametrize(
    ("coverage", "outcomes", "checks"),
    [
        (just_below(0.98), (10, 10), {"scored, share"}),
        (NAN, (10, 10), {"scored, share"}),
        (1.0, (9, 10), {"solved dialogues"}),
        (1.0, (10, 9), {"unsolved dialogues"}),
        (1.0, None, set()),
    ],
)
def test_too_few_scored_dialogues_fail_the_calibration(
    coverage: float, outcomes: tuple[int, int] | None, checks: set[str]
) -> None:
    assert failed(verdict(calibration(), coverage, outcomes)) == checks
