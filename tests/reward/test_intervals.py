"""Bootstrap intervals: their coverage, their groups, and undefined statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from rc1_lib.reward.intervals import bootstrap, percentile_interval

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
    assert found["gain"].low >= 0.05
    assert found["a"].high - found["a"].low > 0.1


def test_few_undefined_resamples_are_left_out_and_many_make_the_interval_undefined() -> None:
    rarely = percentile_interval(0.5, [math.nan] * 5 + [0.4, 0.6] * 48, 0.9)
    assert (rarely.low, rarely.high, rarely.resamples) == pytest.approx((0.4, 0.6, 96))
    often = percentile_interval(0.5, [math.nan] * 6 + [0.4, 0.6] * 47, 0.9)
    assert math.isnan(often.low) and math.isnan(often.high)
    assert often.resamples == 94
    assert math.isnan(percentile_interval(0.5, [], 0.9).low)
