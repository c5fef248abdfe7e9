"""Values with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev

from rc1_lib.numbers.uncertainty import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and the ends of its interval."""

    value: float
    low: float
    high: float


def exactly(value: float) -> Estimate:
    """Return a known value, whose interval has no width."""
    return Estimate(value, value, value)


def mean_of(values: Sequence[float]) -> Estimate:
    """Return the mean of at least two observations, with Student's interval ("The Probable Error of a Mean", 1908)."""
    assert len(values) >= 2, "one observation has no spread"
    from scipy.stats import t

    mean = fmean(values)
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * stdev(values) / math.sqrt(len(values))
    return Estimate(mean, mean - half, mean + half)


def share_of(hits: Sequence[bool]) -> Estimate:
    """Return the share of hits among at least one observation, with Wilson's interval.

    The interval has a width even if all observations are hits, or none is. Source: Wilson, "Probable Inference, the Law
    of Succession, and Statistical Inference" (1927), equation 4.
    """
    assert hits, "a share needs an observation"
    n, share, z = len(hits), fmean(hits), NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle, shrunk = share + z * z / (2 * n), 1 + z * z / n
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Rounding may put an end on the wrong side of a share of 0 or 1.
    return Estimate(
        share, min(share, max(0.0, (middle - half) / shrunk)), max(share, min(1.0, (middle + half) / shrunk))
    )
