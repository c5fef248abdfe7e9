"""A figure with its interval, and what can be reckoned with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

CONFIDENCE = 0.95
"""Nominal share of such intervals that hold the true mean."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and the ends of its interval; none is below 0."""

    value: float
    low: float
    high: float

    def __mul__(self, factor: float | Estimate) -> Estimate:
        """So many times as much; of two estimates the ends are multiplied, which is wide rather than narrow."""
        if isinstance(factor, Estimate):
            return Estimate(self.value * factor.value, self.low * factor.low, self.high * factor.high)
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def __add__(self, other: Estimate) -> Estimate:
        """Both together; the ends are added, which is wide rather than narrow."""
        return Estimate(self.value + other.value, self.low + other.low, self.high + other.high)


NOTHING = Estimate(0.0, 0.0, 0.0)


def exactly(value: float) -> Estimate:
    """A figure that is known."""
    return Estimate(value, value, value)


def mean_of(values: Sequence[float]) -> Estimate:
    """The mean of what at least two looks gave, with Student's interval ("The Probable Error of a Mean", 1908)."""
    assert len(values) >= 2, "one look tells nothing of the next"
    from scipy.stats import t

    mean = fmean(values)
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, max(0.0, mean - half), mean + half)
