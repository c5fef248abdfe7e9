"""Rank statistics: against scipy on repeated rows, ties worked out by hand, and undefined cases."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rc1_lib.reward.rank_agreement import (
    auc,
    improvement_pct,
    kendall_tau_b,
    mean_absolute_error,
    spearman,
    top_lead_kept,
    top_overlap,
)

Vector = NDArray[np.float64]
Statistic = Callable[..., float]
CORRELATIONS: dict[Statistic, Statistic] = {
    spearman: lambda x, y: float(stats.spearmanr(x, y)[0]),
    kendall_tau_b: lambda x, y: float(stats.kendalltau(x, y)[0]),
}


def tied_columns(seed: int) -> tuple[Vector, Vector, NDArray[np.int64]]:
    """Return two columns with many or few ties, and the number of repetitions of each row."""
    rng = np.random.default_rng(seed)
    n, levels = int(rng.integers(4, 80)), int(rng.integers(2, 60))
    x = rng.integers(0, levels, n) / 7
    y = np.round(x * rng.integers(-1, 2) + rng.integers(0, levels, n) / 3, 3)
    return x, y, rng.integers(0, 4, n)


@pytest.mark.parametrize("statistic", CORRELATIONS)
def test_integer_weights_equal_repeated_rows(statistic: Statistic) -> None:
    compared = 0
    for seed in range(150):
        x, y, times = tied_columns(seed)
        long_x, long_y = np.repeat(x, times), np.repeat(y, times)
        if len(set(long_x)) < 2 or len(set(long_y)) < 2:
            assert math.isnan(statistic(x, y, times))
            continue
        compared += 1
        assert statistic(x, y, times) == pytest.approx(CORRELATIONS[statistic](long_x, long_y), abs=1e-12)
        assert statistic(x, y, 0.5 * times) == pytest.approx(statistic(x, y, times), abs=1e-12), (
            "only the proportions matter"
        )
    assert compared > 120


def test_weighted_kendall_equals_its_definition() -> None:
    x, y, _ = tied_columns(11)
    weights = np.random.default_rng(1).random(len(x))
    pairs = weights[:, None] * weights
    sign_x, sign_y = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    expected = (pairs * sign_x * sign_y).sum() / math.sqrt(
        (pairs * sign_x * sign_x).sum() * (pairs * sign_y * sign_y).sum()
    )
    assert kendall_tau_b(x, y, weights) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("statistic", CORRELATIONS)
@pytest.mark.parametrize(
    ("x", "y", "weights"),
    [
        ([], [], None),
        ([1, 1, 1], [1, 2, 3], None),
        ([1, 2], [1, 2], [0, 0]),
    ],
)
def test_correlations_without_variation_are_undefined(
    statistic: Statistic, x: list[float], y: list[float], weights: list[float]
) -> None:
    assert math.isnan(statistic(x, y, weights))


def test_top_overlap_equals_that_worked_out_by_hand() -> None:
    # Of 5 rows, 40 % are 2. By x: row 0 is in; rows 1, 2, 3 tie for the one place left, a third each.
    # By y: rows 1 and 4 are in. They share a third of row 1, of 2 places: 1/6.
    assert top_overlap([9, 5, 5, 5, 1], [1, 8, 2, 3, 9], 0.4) == pytest.approx(1 / 6)
    # With y tied as well: rows 0 and 1 share the first two places, so both are in: shared 1 + 1/3 of 2.
    assert top_overlap([9, 5, 5, 5, 1], [7, 7, 2, 3, 1], 0.4) == pytest.approx(2 / 3)


def test_top_overlap_with_row_weights_equals_that_worked_out_by_hand() -> None:
    # Weights sum to 4, so the top half holds 2: by x row 0 (weight 1) and half of row 1 (weight 2); by y row 1 alone.
    assert top_overlap([3, 2, 1], [1, 3, 2], 0.5, [1, 2, 1]) == pytest.approx(2 * 0.5 / 2)


def test_top_overlap_with_weights_equals_repeated_rows() -> None:
    for seed in range(40):
        x, y, times = tied_columns(seed)
        if times.sum():
            long = top_overlap(np.repeat(x, times), np.repeat(y, times), 0.2)
            assert top_overlap(x, y, 0.2, times) == pytest.approx(long, abs=1e-12)


def test_top_lead_kept_equals_that_worked_out_by_hand() -> None:
    # The mean of x is 2.5; its best half leads by 1. By y rows 0 and 3 are in, of mean 2.5; by z rows 1 and 3, of 3.
    assert top_lead_kept([1, 2, 3, 4], [9, 1, 2, 8], 0.5) == pytest.approx(0.0)
    assert top_lead_kept([1, 2, 3, 4], [1, 9, 2, 8], 0.5) == pytest.approx(0.5)
    assert top_lead_kept([1, 2, 3, 4], [4, 3, 2, 1], 0.5) == pytest.approx(-1.0)
    # With row 3 counted twice: the mean is 2.8, the best 2.5 rows are twice row 3 and half of row 2.
    assert top_lead_kept([1, 2, 3, 4], [4, 3, 2, 1], 0.5, [1, 1, 1, 2]) == pytest.approx(
        ((1 + 2 + 0.5 * 3) / 2.5 - 2.8) / ((0.5 * 3 + 2 * 4) / 2.5 - 2.8)
    )


@given(
    st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.integers(0, 3)), min_size=1, max_size=30),
)
def test_auc_equals_its_definition(rows: list[tuple[int, bool, int]]) -> None:
    repeated = [(score, solved) for score, solved, times in rows for _ in range(times)]
    pairs = [(good, bad) for good, yes in repeated if yes for bad, also in repeated if not also]
    found = auc([row[0] for row in rows], [float(row[1]) for row in rows], [row[2] for row in rows])
    if not pairs:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(sum((good > bad) + 0.5 * (good == bad) for good, bad in pairs) / len(pairs))


def test_auc_needs_binary_outcomes_and_bounds_the_rank_correlation() -> None:
    assert math.isnan(auc([0.1, 0.2, 0.3], [0.0, 0.5, 1.0]))
    scores, solved = list(range(200)), [0.0] * 40 + [1.0] * 160
    assert auc(scores, solved) == 1.0
    assert spearman(scores, solved) == pytest.approx(math.sqrt(3 * 0.2 * 0.8), abs=1e-4), (
        "the highest value of any order"
    )


@pytest.mark.parametrize("measure", [spearman, kendall_tau_b, mean_absolute_error])
@pytest.mark.parametrize(
    ("x", "y", "weights", "words"),
    [
        ([1, 2], [1, 2, 3], None, "one length"),
        ([1, math.nan], [1, 2], None, "finite"),
        ([1, 2], [1, 2], [1, -1], "row weights"),
    ],
)
def test_columns_of_unequal_length_or_with_invalid_numbers_raise_an_error(
    measure: Statistic, x: list[float], y: list[float], weights: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        measure(x, y, weights)


@pytest.mark.parametrize(
    ("new", "old", "percent"),
    [(0.5, 0.4, 25), (0.3, 0.4, -25), (0.06, 0.01, 100), (0.02, -0.4, 105), (-0.03, -0.01, -40), (0.1, 0.0, 200)],
)
def test_improvement_pct_over_small_and_negative_bases(new: float, old: float, percent: float) -> None:
    assert improvement_pct(new, old) == pytest.approx(percent)
