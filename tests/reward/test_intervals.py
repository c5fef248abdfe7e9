"""Bootstrap intervals: their coverage, their groups, and undefined statistics."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from rc1_lib.reward.intervals import Interval, bootstrap, draw_counts, percentile_interval
from rc1_lib.reward.rank_agreement import kendall_tau_b, spearman, top_overlap

Vector = NDArray[np.float64]


def mean_of(values: Vector, weights: Vector) -> Mapping[str, float]:
    return {"mean": float(weights @ values / weights.sum())}


def test_the_interval_contains_the_truth_at_its_nominal_rate() -> None:
    """Rows of one group are nearly equal: drawing groups is right, drawing rows gives far too narrow intervals."""
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(40), 4)
    hits, hits_by_row, runs = 0, 0, 200
    for run in range(runs):
        values = np.repeat(rng.normal(0.5, 1, 40), 4) + rng.normal(0, 0.2, 160)
        for by_row in (False, True):
            interval = bootstrap(
                partial(mean_of, values),
                groups=np.arange(160) if by_row else groups,
                weights=np.ones(160),
                resamples=200,
                confidence=0.9,
                seed=run,
            )["mean"]
            inside = interval.low <= 0.5 <= interval.high
            hits += inside and not by_row
            hits_by_row += inside and by_row
    assert 0.83 <= hits / runs <= 0.95
    assert hits_by_row / runs < 0.7


def test_the_interval_of_a_difference_is_paired() -> None:
    rng = np.random.default_rng(1)
    hard = rng.normal(0, 1, 300)

    def statistics(weights: Vector) -> dict[str, float]:
        a, b = weights @ (hard + 0.1) / weights.sum(), weights @ hard / weights.sum()
        return {"a": float(a), "gain": float(a - b)}

    found = bootstrap(statistics, groups=np.arange(300), weights=np.ones(300), resamples=200, confidence=0.95, seed=3)
    assert found["gain"].high - found["gain"].low < 1e-12
    assert found["gain"].clears(">=", 0.05)
    assert found["a"].high - found["a"].low > 0.1


def test_intervals_of_rank_statistics_contain_their_values() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 30, 245) / 30
    y = x + rng.normal(0, 0.2, 245)
    found = bootstrap(
        lambda weights: {
            "spearman": spearman(x, y, weights),
            "kendall": kendall_tau_b(x, y, weights),
            "top": top_overlap(x, y, 0.1, weights),
        },
        groups=[f"question-{number % 120}" for number in range(245)],
        weights=np.where(np.arange(245) % 9, 1.0, 0.5),
        resamples=1000,
        confidence=0.95,
        seed=4,
    )
    for interval in found.values():
        assert interval.low < interval.value < interval.high
        assert interval.resamples == 1000


def test_the_interval_depends_only_on_the_seed() -> None:
    values = np.random.default_rng(0).random(50)

    def draw(seed: int) -> Interval:
        return bootstrap(
            partial(mean_of, values),
            groups=np.arange(50) // 2,
            weights=np.ones(50),
            resamples=50,
            confidence=0.9,
            seed=seed,
        )["mean"]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_a_group_is_always_drawn_whole() -> None:
    groups = np.array(["b", "a", "b", "c", "a", "b"])
    base = np.array([1, 1, 0.5, 1, 2, 1])
    drawn: list[Vector] = []

    def statistics(weights: Vector) -> dict[str, float]:
        drawn.append(weights)
        return {"rows": float(weights.sum())}

    bootstrap(statistics, groups=groups, weights=base, resamples=30, confidence=0.9, seed=0)
    assert (drawn[0] == base).all()
    for weights in drawn:
        times = weights / base
        for group in "abc":
            assert len(set(times[groups == group])) == 1
        assert sum(times[[1, 0, 3]]) == 3
    assert any((weights == 0).any() for weights in drawn)


def test_each_resample_draws_as_many_groups_as_there_are() -> None:
    counts = draw_counts(np.random.default_rng(0), 5000)
    assert counts.sum() == 5000
    assert (counts == 0).mean() == pytest.approx(math.exp(-1), abs=0.03)


def test_few_undefined_resamples_are_left_out_and_many_make_the_interval_undefined() -> None:
    rarely = percentile_interval(0.5, [math.nan] * 5 + [0.4, 0.6] * 48, 0.9)
    assert (rarely.low, rarely.high, rarely.resamples) == pytest.approx((0.4, 0.6, 96))
    often = percentile_interval(0.5, [math.nan] * 6 + [0.4, 0.6] * 47, 0.9)
    assert math.isnan(often.low) and math.isnan(often.high)
    assert often.resamples == 94
    assert math.isnan(percentile_interval(0.5, [], 0.9).low)


def test_an_interval_clears_a_threshold_only_as_a_whole() -> None:
    interval = Interval(0.5, 0.4, 0.6, 0.95, 100)
    assert interval.clears(">=", 0.4) and not interval.clears(">=", 0.41)
    assert interval.clears("<=", 0.6) and not interval.clears("<=", 0.59)
    undefined = Interval(0.5, math.nan, math.nan, 0.95, 0)
    assert not undefined.clears(">=", -1) and not undefined.clears("<=", 1)
    with pytest.raises(ValueError, match="'>=' or '<='"):
        interval.clears(">", 0.4)  # type: ignore[arg-type]


def test_an_interval_with_nan_is_valid_json() -> None:
    assert json.loads(json.dumps(Interval(0.5, math.nan, 0.6, 0.95, 100).to_dict(), allow_nan=False)) == {
        "value": 0.5,
        "low": None,
        "high": 0.6,
        "confidence": 0.95,
        "resamples": 100,
    }


@pytest.mark.parametrize(
    ("rows", "groups", "resamples", "confidence"),
    [(0, 0, 10, 0.9), (3, 2, 10, 0.9), (3, 3, 0, 0.9), (3, 3, 10, 1.0)],
)
def test_invalid_rows_groups_or_settings_raise_an_error(
    rows: int, groups: int, resamples: int, confidence: float
) -> None:
    with pytest.raises(ValueError, match=r"\(\d,\) groups, \(\d,\) weights"):
        bootstrap(
            lambda weights: {},
            groups=np.arange(groups),
            weights=np.ones(rows),
            resamples=resamples,
            confidence=confidence,
            seed=0,
        )
