"""A figure with its interval, and arithmetic with such figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

CONFIDENCE = 0.95
"""Confidence level of the intervals."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and the ends of its interval, all at least 0."""

    value: float
    low: float
    high: float

    def __mul__(self, factor: float | Estimate) -> Estimate:
        """The product; for two estimates the ends are multiplied, which makes the interval rather too wide."""
        if isinstance(factor, Estimate):
            return Estimate(self.value * factor.value, self.low * factor.low, self.high * factor.high)
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def __add__(self, other: Estimate) -> Estimate:
        """The sum; the ends are added, which makes the interval rather too wide."""
        return Estimate(self.value + other.value, self.low + other.low, self.high + other.high)


NOTHING = Estimate(0.0, 0.0, 0.0)


def exactly(value: float) -> Estimate:
    """A known figure."""
    return Estimate(value, value, value)


def mean_of(values: Sequence[float]) -> Estimate:
    """The mean of at least two observations, with Student's interval ("The Probable Error of a Mean", 1908)."""
    assert len(values) >= 2, "one observation has no spread"
    from scipy.stats import t

    mean = fmean(values)
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, max(0.0, mean - half), mean + half)


def share_of(hits: Sequence[bool]) -> Estimate:
    """The share of hits among at least one observation, with Wilson's interval.

    It has a width even if all were hits, or none. Source: Wilson, "Probable Inference, the Law of Succession, and
    Statistical Inference" (1927), equation 4.
    """
    assert hits, "a share needs an observation"
    n, share, z = len(hits), fmean(hits), NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle, shrunk = share + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding may leave an end on the wrong side of a share of 0 or 1.
    return Estimate(
        share, min(share, max(0.0, (middle - half) / shrunk)), max(share, min(1.0, (middle + half) / shrunk))
    )
