"""The calibration: exact optima, recovery of planted weights, held-out folds, and errors for invalid input."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rc1_lib.errors import RC1Error
from rc1_lib.reward.calibration import Calibration, calibrate_weights
from rc1_lib.reward.weight_fit import kkt_residual, solve

Vector = NDArray[np.float64]
NAMES = ("answered", "grounded", "reasoned", "concise", "settled")
PLANTED = np.array([0.4, 0.3, 0.15, 0.15, 0.0])
"""The last dimension carries no information."""


def planted_rows(noise: int | None, n: int = 3000, seed: int = 0) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """Return scores, target and groups; the mean of the target is the planted weighted sum.

    The target is the share of heads in `noise` coin tosses: 1 gives success or failure, None no noise.
    """
    rng = np.random.default_rng(seed)
    scores = rng.random((n, len(NAMES)))
    target = scores @ PLANTED
    return scores, rng.binomial(noise, target) / noise if noise else target, np.arange(n) // 3


def calibrated(scores: Any, target: Any, groups: Any, **changes: Any) -> Calibration:
    """Calibrate without L2, with few resamples and the prior on the first and last dimension, unless changed."""
    names = changes.pop("names", NAMES)
    settings: dict[str, Any] = {
        "prior": {names[0]: 0.5, names[-1]: 0.5}, "l2": 0.0, "max_weight": 0.5, "cv": 5, "boot": 20, "seed": 1,
        "confidence": 0.9,
    }  # fmt: skip
    return calibrate_weights(scores, target, groups, names=names, **(settings | changes))


def random_problem(rng: np.random.Generator, d: int) -> dict[str, Any]:
    """Return a least-squares problem of a few random rows: often singular, with or without L2."""
    rows = int(rng.integers(1, 4 * d))
    scores = rng.random((rows, d))
    kind = int(rng.integers(5))
    if kind == 1:
        scores = np.round(scores)
    if kind == 2 and d > 2:
        scores[:, 1], scores[:, 2] = scores[:, 0], 1 - scores[:, 0]
    if kind == 3 and d > 1:
        scores[:, 1] = scores[:, 0] + rng.normal(0, 10.0 ** -rng.integers(2, 12), rows)
    target = scores @ rng.dirichlet(np.full(d, 0.3)) if kind == 4 else rng.random(rows)
    return {
        "gram": scores.T @ scores / rows,
        "moment": scores.T @ target / rows,
        "prior": rng.dirichlet(np.ones(d)),
        "l2": float(rng.choice([0, 0, 1e-6, 0.01, 0.1, 5])),
        "max_weight": float(rng.choice([1 / d, 0.5, 1])) if d > 1 else 1.0,
    }


def objective(weights: Vector, problem: dict[str, Any]) -> float:
    apart = weights - problem["prior"]
    return float(weights @ problem["gram"] @ weights - 2 * problem["moment"] @ weights + problem["l2"] * apart @ apart)


def best_by_brute_force(problem: dict[str, Any]) -> float:
    """Return the lowest objective over every choice of weights that are fixed at a bound."""
    d, top = len(problem["moment"]), problem["max_weight"]
    hessian = problem["gram"] + problem["l2"] * np.eye(d)
    linear = problem["moment"] + problem["l2"] * problem["prior"]
    best = math.inf
    for state in itertools.product((0.0, top, None), repeat=d):
        free = [place for place, held in enumerate(state) if held is None]
        weights = np.array([held or 0.0 for held in state])
        if free:
            system = np.ones((len(free) + 1, len(free) + 1))
            system[:-1, :-1], system[-1, -1] = hessian[np.ix_(free, free)], 0
            wanted = np.append((linear - hessian @ weights)[free], 1 - weights.sum())
            weights[free] = np.linalg.lstsq(system, wanted, rcond=1e-12)[0][:-1]
        if abs(weights.sum() - 1) < 1e-9 and weights.min() > -1e-9 and weights.max() < top + 1e-9:
            best = min(best, objective(weights, problem))
    return best


def test_every_solution_meets_the_optimality_conditions() -> None:
    rng = np.random.default_rng(0)
    for _ in range(600):
        problem = random_problem(rng, int(rng.integers(1, 12)))
        solution = solve(**problem)
        weights = solution.weights
        assert solution.kkt_residual <= (1e-12 if problem["l2"] else 1e-8)
        assert kkt_residual(weights, **problem) == solution.kkt_residual
        assert weights.min() >= 0 and weights.max() <= problem["max_weight"]
        assert abs(weights.sum() - 1) <= 1e-12


def test_every_solution_is_as_good_as_the_best_by_brute_force() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        problem = random_problem(rng, int(rng.integers(1, 5)))
        assert objective(solve(**problem).weights, problem) <= best_by_brute_force(problem) + 1e-9


def test_the_kkt_residual_is_large_for_weights_that_are_not_optimal() -> None:
    problem = random_problem(np.random.default_rng(2), 4) | {"l2": 0.1, "max_weight": 0.5}
    best = solve(**problem).weights
    shifted = np.clip(best + np.array([1e-4, -1e-4, 0, 0]), 0, 0.5)
    assert kkt_residual(shifted, **problem) > 1e-6
    assert kkt_residual(best * 1.001, **problem) > 1e-4, "the sum is not 1"
    assert kkt_residual(np.array([0.9, 0.1, 0, 0]), **problem) >= 0.4 - 1e-12, "a weight above the highest"
    assert kkt_residual(np.array([0.6, 0.5, -0.1, 0]), **problem) >= 0.1 - 1e-12, "a negative weight"
    flat: dict[str, Any] = {"moment": np.array([0.5, 0.5]), "prior": np.zeros(2), "l2": 0.0, "max_weight": 1.0}
    held = flat | {"gram": np.eye(2)}
    assert kkt_residual(np.array([1.0, 0.0]), **held) == pytest.approx(1), "fixed at bounds that the optimum leaves"


@pytest.mark.parametrize(("noise", "tolerance"), [(None, 1e-9), (1, 0.12)])
def test_planted_weights_are_recovered(noise: int | None, tolerance: float) -> None:
    """The tolerance is four standard errors of least squares: sqrt(0.25 / noise / (n / 12))."""
    found = calibrated(*planted_rows(noise))
    assert list(found.weights.values()) == pytest.approx(PLANTED, abs=tolerance)
    assert found.kkt_residual <= 1e-11 and found.refits_kkt_residual <= 1e-11
    assert found.median_spearman["calibrated"] > found.median_spearman["old"]
    assert found.improve_pct_vs_old > 0 and found.mae_drop_pct_vs_old > 0


def test_rows_with_a_missing_score_are_left_out_and_counted() -> None:
    scores, target, groups = planted_rows(10)
    rng = np.random.default_rng(3)
    scores_with_gaps, target_with_gaps = scores.copy(), target.copy()
    scores_with_gaps[rng.random(scores.shape) < 0.05] = np.nan
    target_with_gaps[rng.random(target.shape) < 0.05] = np.nan
    missing = np.isnan(scores_with_gaps).any(axis=1) | np.isnan(target_with_gaps)
    found = calibrated(scores_with_gaps, target_with_gaps, groups)
    assert found.unscored == missing.sum() > 500
    assert found.rows == len(target) - missing.sum() == sum(fold.rows for fold in found.folds)
    assert list(found.weights.values()) == pytest.approx(PLANTED, abs=0.05)
    without = calibrated(scores[~missing], target[~missing], groups[~missing])
    assert found.to_dict() == without.to_dict() | {"unscored": found.unscored}


def test_row_weights_are_frequency_weights() -> None:
    """A row of weight 0.5 counts half, as if every other row were repeated."""
    scores, target, groups = planted_rows(1, n=300)
    unstable = np.random.default_rng(5).random(300) < 0.3
    times = np.where(unstable, 1, 2)
    weighed = calibrated(scores, target, groups, row_weights=times / 2)
    written_out = calibrated(*(np.repeat(part, times, axis=0) for part in (scores, target, groups)))
    assert weighed.rows == 300 and written_out.rows == times.sum()
    assert weighed.weights == pytest.approx(written_out.weights, abs=1e-12)
    assert weighed.median_spearman == pytest.approx(written_out.median_spearman, abs=1e-12)
    assert weighed.mae == pytest.approx(written_out.mae, abs=1e-12)
    for name, interval in weighed.intervals.items():
        assert interval.to_dict() == pytest.approx(written_out.intervals[name].to_dict(), abs=1e-9)
    assert weighed.weights != pytest.approx(calibrated(scores, target, groups).weights, abs=1e-4)


def test_groups_are_never_split_between_folds() -> None:
    scores, target, _ = planted_rows(1, n=500)
    groups = np.random.default_rng(2).choice([f"question-{number}" for number in range(37)], 500)
    found = calibrated(scores, target, groups)
    assert sum(fold.groups for fold in found.folds) == found.groups == len(set(groups))
    assert sum(fold.rows for fold in found.folds) == 500


def test_a_fold_is_evaluated_with_weights_from_the_other_folds() -> None:
    """One group contradicts the rest: the fold that holds it out is fitted as if it did not exist."""
    scores, target, groups = planted_rows(None, n=300)
    odd = groups == 50
    target = np.where(odd, 1 - target, target)
    found = calibrated(scores, target, groups)
    exact = [fold for fold in found.folds if list(fold.weights.values()) == pytest.approx(PLANTED, abs=1e-9)]
    assert len(exact) == 1
    assert exact[0].mae["calibrated"] > 1e-3
    assert list(found.weights.values()) != pytest.approx(PLANTED, abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"keep": 4}, r"^4 .* 5 dimensions"),
        ({"groups": np.arange(90) % 4}, r"4 groups .* 5 folds"),
        ({"max_weight": 0.19}, r"5 weights .* 0\.19 .* 1\b"),
        ({"target": np.full(90, 0.5)}, r"target .* 0\.5 .* 90 "),
        ({"target": np.linspace(0, 1.2, 90)}, r"target .*\[0, 1\], .*1\.0"),
        ({"scores": np.full((90, 5), 1.5)}, r"answered .*\[0, 1\], .*1\.5 \(90 of 90"),
        ({"scores": np.full((90, 5), np.nan)}, r"^0 .* 90 .*score"),
        ({"prior": {"charming": 1.0}}, r"old weights .* charming, "),
        ({"row_weights": np.full(90, -1.0)}, "row weights .*finite"),
    ],
)
def test_invalid_input_raises_an_error_that_names_the_fault(changes: dict[str, Any], words: str) -> None:
    scores, target, groups = planted_rows(1, n=90)
    keep = changes.pop("keep", 90)
    rows = [changes.pop(name, column)[:keep] for name, column in
            (("scores", scores), ("target", target), ("groups", groups))]  # fmt: skip
    with pytest.raises(RC1Error, match=words):
        calibrated(*rows, **changes)
