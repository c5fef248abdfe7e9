"""Resampling whole groups of rows: confidence intervals from a bootstrap, and the folds of a cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rc1_lib.checks import defined
from rc1_lib.errors import RC1Error
from rc1_lib.numbers.uncertainty import CheckInterval

Vector = NDArray[np.float64]

MOST_UNDEFINED = 0.05
"""Largest share of resamples on which a statistic may be undefined; beyond it, the interval is undefined too."""


@dataclass(frozen=True)
class Interval:
    """A statistic with its confidence interval."""

    value: float
    """The statistic on the original rows; NaN if undefined."""
    low: float
    high: float
    confidence: float
    """Confidence level, in (0, 1)."""
    resamples: int
    """Resamples on which the statistic was defined."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: null where a number is undefined."""
        return {name: defined(value) for name, value in asdict(self).items()}

    def of(self, n: float, what: str) -> CheckInterval:
        """Return the interval as part of a check, over `n` dialogues, prompts or other units."""
        return CheckInterval(self.low, self.high, self.confidence, n, what)


def interval_in_words(figure: Interval) -> str:
    """Return `0.81 (95 %: 0.74 to 0.86)`, or `undefined`."""
    if figure.value != figure.value:
        return "undefined"
    if figure.low != figure.low:
        return f"{figure.value:.4g}, no interval"
    return f"{figure.value:.4g} ({100 * figure.confidence:g} %: {figure.low:.4g} to {figure.high:.4g})"


def percentile_interval(value: float, draws: ArrayLike, confidence: float) -> Interval:
    """Compute the percentile interval of a statistic from its values on the resamples (NaN if undefined).

    Source: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
    """
    every = np.asarray(draws, np.float64)
    defined = every[~np.isnan(every)]
    low = high = math.nan
    if len(every) and len(every) - len(defined) <= MOST_UNDEFINED * len(every):
        tail = (1 - confidence) / 2
        low, high = (float(bound) for bound in np.quantile(defined, [tail, 1 - tail]))
    return Interval(float(value), low, high, confidence, len(defined))


def group_numbers(groups: ArrayLike) -> tuple[NDArray[np.intp], int]:
    """Number the groups from 0 in sorted order; return each row's number, and the number of groups."""
    names, numbers = np.unique(np.asarray(groups), return_inverse=True)
    return numbers, len(names)


def draw_counts(rng: np.random.Generator, groups: int) -> NDArray[np.int64]:
    """Draw as many groups as there are, with replacement; return how often each was drawn."""
    return rng.multinomial(groups, np.full(groups, 1 / groups))


def bootstrap(
    statistics: Callable[[Vector], Mapping[str, float]],
    *,
    groups: ArrayLike,
    weights: ArrayLike,
    resamples: int,
    confidence: float,
    seed: int,
) -> dict[str, Interval]:
    """Compute percentile intervals of several statistics on the same resamples, so that their differences are paired.

    Rows about one question are not independent. So each resample draws whole groups with replacement, and `statistics`
    gets each row's weight multiplied by the number of times its group was drawn.

    Args:
        statistics: from frequency weights, shape (n,), to named numbers; NaN if undefined.
        groups: shape (n,), the group of each row.
        weights: shape (n,), row weights at least 0.
        resamples: how many to draw, at least 1.
        confidence: in (0, 1).
        seed: the same seed draws the same groups.

    Returns:
        One interval per name. Resamples on which a statistic is NaN are left out of its interval; if that is more than
        5 %, the bounds are NaN.

    Raises:
        ValueError: for no rows, groups and weights of different lengths, or no resamples.
    """
    base = np.asarray(weights, np.float64)
    numbers, count = group_numbers(groups)
    if not len(base) or numbers.shape != base.shape or resamples < 1 or not 0 < confidence < 1:
        raise ValueError(
            f"a bootstrap needs rows, one group and one weight each, resamples and a confidence in (0, 1); found "
            f"{numbers.shape} groups, {base.shape} weights, {resamples} resamples, confidence {confidence}"
        )
    rng = np.random.default_rng(seed)
    values = dict(statistics(base))
    draws = [statistics(base * draw_counts(rng, count)[numbers]) for _ in range(resamples)]
    return {
        name: percentile_interval(value, [drawn[name] for drawn in draws], confidence) for name, value in values.items()
    }


def group_folds(
    sizes: NDArray[np.float64], folds: int, seed: int, strata: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Assign groups to folds: shuffled, then distributed by size, so that the folds are about equally large.

    Args:
        sizes: shape (groups,), weight of each group's rows.
        folds: how many, at least 2.
        seed: the same seed gives the same folds.
        strata: shape (groups,): groups of one stratum are spread evenly too; default: a single stratum.

    Returns:
        Shape (groups,): numbers from 0 to `folds` - 1, each of them present.

    Raises:
        RC1Error: for fewer than 2 folds or fewer groups than folds.
    """
    if folds < 2 or len(sizes) < folds:
        raise RC1Error(
            f"{len(sizes)} groups of rows cannot make {folds} folds: a cross-validation needs at least 2 folds, with "
            f"at least one group (source question) each; calibrate on more questions or lower cv"
        )
    shuffled = np.random.default_rng(seed).permutation(len(sizes))
    stratum = np.zeros(len(sizes), np.intp) if strata is None else strata
    dealt = shuffled[np.lexsort((-sizes[shuffled], stratum[shuffled]))]
    # Back and forth (0 1 2 2 1 0 ...), so that no fold gets the larger group of every round.
    one_round = np.append(np.arange(folds), np.arange(folds)[::-1])
    fold = np.empty(len(sizes), np.intp)
    fold[dealt] = np.resize(one_round, len(sizes))
    return fold
