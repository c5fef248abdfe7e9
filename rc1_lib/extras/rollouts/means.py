"""Means over rollouts with intervals that resample whole prompts, on which alone rollouts are independent."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl

from rc1_lib.config.training import HELD_OUT_SEED
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.reward.intervals import Interval, Vector, bootstrap

MOST = 256
"""Rollouts of one prompt that are compared in pairs: of a file without prompts all pairs would be too many."""


def means(values: pl.DataFrame, groups: pl.Series, resamples: int) -> dict[str, Interval]:
    """Return the mean of each column, nulls left out, all on the same resamples, so that differences are paired.

    `values` has a row per rollout or pair, at least one, and numbers or truth values; `groups` has each row's question.
    """
    numbers = values.cast(pl.Float64).to_numpy()
    known = ~np.isnan(numbers)
    sums = np.hstack([np.where(known, numbers, 0.0), known])

    def statistics(weights: Vector) -> dict[str, float]:
        over, of = (weights @ sums).reshape(2, -1)
        with np.errstate(invalid="ignore"):
            return dict(zip(values.columns, (over / of).tolist(), strict=True))

    found = bootstrap(
        statistics, groups=groups.to_numpy(), weights=np.ones(values.height), resamples=resamples,
        confidence=CONFIDENCE, seed=HELD_OUT_SEED,
    )  # fmt: skip
    if groups.n_unique() > 1:
        return found
    return {name: replace(one, low=math.nan, high=math.nan) for name, one in found.items()}  # one question varies never
