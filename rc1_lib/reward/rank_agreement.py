"""How well two columns of scores agree: rank correlations, shared top rows, errors. Ties and row weights count exactly.

Row weights are frequency weights: a row of weight 2 counts as the row written twice, one of weight 0.5 as half a row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Places = NDArray[np.intp]

DECIMALS = 12
"""Reliable decimal places of a weighted sum of scores in [0, 1]; the rest is rounding."""


def without_rounding_noise(scores: ArrayLike) -> Vector:
    """Round scores to the reliable places of a weighted sum of dimensions.

    Two dialogues with the same sum are tied, although the order of additions may change the last bit. Rank statistics
    would see two ranks; apply this to sums before ranking them.
    """
    return np.asarray(np.round(np.asarray(scores, np.float64), DECIMALS), np.float64)


def spearman(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Compute Spearman's rank correlation, with tied rows on their mean rank.

    Args:
        x: shape (n,), finite.
        y: shape (n,), finite.
        weights: shape (n,), at least 0; every row counts once without them.

    Returns:
        The correlation in [-1, 1]; NaN if undefined: no rows, or a column that does not vary.

    Raises:
        ValueError: for columns of different lengths, a number that is not finite, or a negative weight.
    """
    first, second, counts = _checked(x, y, weights)
    if not len(counts):
        return math.nan
    return rank_correlation(places(first), places(second), counts)


def kendall_tau_b(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Compute Kendall's tau-b: concordant minus discordant pairs, relative to the pairs untied in x and in y.

    Takes O(n log n) time and O(n) memory. Arguments, NaN and errors as in `spearman`.

    Source: Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945).
    """
    first, second, counts = _checked(x, y, weights)
    if not len(counts):
        return math.nan
    place_x, place_y = places(first), places(second)
    if place_x.max() == 0 or place_y.max() == 0:
        return math.nan
    every = counts.sum() ** 2
    both = places(place_x * (place_y.max() + 1) + place_y)
    # Twice the weight of the pairs with different x, with different y, and with both different.
    apart_x, apart_y = every - _squares(place_x, counts), every - _squares(place_y, counts)
    apart_both = apart_x + apart_y - every + _squares(both, counts)
    order = np.lexsort((place_y, place_x))
    discordant = _inversions(place_y[order], counts[order])
    return _clipped((apart_both - 4 * discordant) / math.sqrt(apart_x) / math.sqrt(apart_y))


def top_overlap(x: ArrayLike, y: ArrayLike, share: float, weights: ArrayLike | None = None) -> float:
    """How much of the top `share` by x is in the top `share` by y, independent of the order of tied rows.

    A top set has k = share × Σ weights rows. A row above the score at its boundary has membership 1, a row tied at the
    boundary the fraction of its tie group that still fits, and a row below it 0. The overlap is
    Σ weight × min(membership by x, membership by y) / k.

    Args:
        x: shape (n,), finite; higher is better.
        y: shape (n,), finite; higher is better.
        share: size of the top, in (0, 1].
        weights: as in `spearman`.

    Returns:
        The overlap in [0, 1]: 1 for two columns of the same order; NaN without rows.

    Raises:
        ValueError: as in `spearman`, and for a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"a top share must be in (0, 1], found {share:g}")
    first, second, counts = _checked(x, y, weights)
    if not len(counts):
        return math.nan
    k = share * counts.sum()
    shared = np.minimum(_membership(first, counts, k), _membership(second, counts, k))
    return min(1.0, float(counts @ shared / k))


def top_membership(scores: ArrayLike, share: float, weights: ArrayLike | None = None) -> Vector:
    """Return each row's membership in the best `share` of the rows: 1 above the boundary, 0 below, a fraction at a tie.

    Raises:
        ValueError: for a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"a top share must be in (0, 1], found {share:g}")
    every = np.asarray(scores, np.float64)
    counted = np.ones(every.shape, np.bool_) if weights is None else np.asarray(weights, np.float64) > 0
    values, _, counts = _checked(scores, scores, weights)
    membership = np.zeros(len(every))
    if len(counts):
        membership[counted] = _membership(values, counts, share * counts.sum())
    return membership


def top_lead_kept(x: ArrayLike, y: ArrayLike, share: float, weights: ArrayLike | None = None) -> float:
    """How much of the lead in x that the top `share` by x has over all rows, the top by y has too.

    (mean of x in the top by y - mean of x) / (mean of x in the top by x - mean of x). Rows that are nearly equal in x
    may replace each other in the top at almost no cost here, while each such change costs a whole place of
    `top_overlap`.

    Args:
        x: shape (n,), finite; higher is better.
        y: shape (n,), finite; higher is better.
        share: size of the top, in (0, 1].
        weights: as in `spearman`.

    Returns:
        1 if the top by y is as good as possible, 0 if it equals all rows, below 0 if it is worse; NaN if x does not
        vary or there are no rows.

    Raises:
        ValueError: as in `spearman`, and for a share outside (0, 1].
    """
    first, _, counts = _checked(x, y, weights)
    if not len(counts):
        return math.nan
    own, other = top_membership(x, share, weights), top_membership(y, share, weights)
    values, every = np.asarray(x, np.float64), (counts * first).sum() / counts.sum()
    size = share * counts.sum()
    row_weights = np.ones(len(values)) if weights is None else np.asarray(weights, np.float64)
    lead, kept = ((row_weights * member * (values - every)).sum() / size for member in (own, other))
    return float(kept / lead) if lead > 0 else math.nan


def auc(scores: ArrayLike, success: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Area under the ROC curve: the share of success/failure pairs that `scores` order correctly; ties count half.

    Unlike a rank correlation with success it does not depend on the success rate: 1 is always possible.

    Source: Hanley, McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
    Radiology 143 (1982).

    Args:
        scores: shape (n,), finite; higher is better.
        success: shape (n,), 0 or 1.
        weights: as in `spearman`.

    Returns:
        The share in [0, 1], 0.5 for uninformative scores; NaN if all succeed or all fail, or some outcome is neither.

    Raises:
        ValueError: as in `spearman`.
    """
    first, second, counts = _checked(scores, success, weights)
    if not np.isin(second, (0.0, 1.0)).all():
        return math.nan
    return pairs_in_order(places(first), second, counts)


def pairs_in_order(place: Places, success: Vector, counts: Vector) -> float:
    """`auc` of rows whose scores are already numbered by `places`; `success` has 0 and 1, weights are above 0."""
    if not len(counts):
        return math.nan
    solved, every = np.bincount(place, counts * success), np.bincount(place, counts)
    failed = every - solved
    pairs = solved.sum() * failed.sum()
    if not pairs > 0:
        return math.nan
    return min(1.0, float((solved * (np.cumsum(failed) - failed / 2)).sum() / pairs))


def mean_absolute_error(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Compute the weighted mean of |x - y|; NaN without rows. Arguments and errors as in `spearman`."""
    first, second, counts = _checked(x, y, weights)
    if not len(counts):
        return math.nan
    return float((counts * np.abs(first - second)).sum() / counts.sum())


_FLOOR = 0.05
"""Smallest base of a relative improvement: over a base near 0 any difference would be a huge percentage."""


def improvement_pct(new: float, old: float) -> float:
    """Return by how many per cent `new` exceeds `old`: 100 (new - old) / max(|old|, 0.05); NaN if either is NaN."""
    return 100 * (new - old) / max(abs(old), _FLOOR) if not math.isnan(old) else math.nan


def drop_pct(new: float, old: float) -> float:
    """Return by how many per cent `new` is below `old`: 100 (old - new) / old; NaN if either is NaN or old is 0."""
    return 100 * (old - new) / old if old else math.nan


def places(values: ArrayLike) -> Places:
    """Number the distinct values upwards from 0: shape (n,); tied rows share a number."""
    return np.unique(np.asarray(values), return_inverse=True)[1]


def rank_correlation(x: Places, y: Places, counts: Vector) -> float:
    """Compute Spearman's correlation of rows already numbered by `places`, without sorting them again.

    The rows may be a subset of the numbered ones. Weights and NaN as in `spearman`, weights above 0.
    """
    if not len(counts):
        return math.nan
    rank_x, rank_y = _mid_ranks(x, counts), _mid_ranks(y, counts)
    if rank_x.min() == rank_x.max() or rank_y.min() == rank_y.max():
        return math.nan
    # Sums of products, not BLAS dot products: on long columns those start threads, which cost more than they gain.
    total = counts.sum()
    rank_x, rank_y = rank_x - (counts * rank_x).sum() / total, rank_y - (counts * rank_y).sum() / total
    spread = math.sqrt((counts * rank_x**2).sum()) * math.sqrt((counts * rank_y**2).sum())
    return _clipped((counts * rank_x * rank_y).sum() / spread)


def _mid_ranks(place: Places, counts: Vector) -> Vector:
    """Rank from 1 upwards, with mean ranks for ties; row i represents `counts[i]` rows."""
    sizes = np.bincount(place, counts)
    ranks: Vector = (np.cumsum(sizes) - (sizes - 1) / 2)[place]
    return ranks


def _checked(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None) -> tuple[Vector, Vector, Vector]:
    """Return the columns as float64, without the rows of weight 0."""
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    counts = np.ones(first.shape) if weights is None else np.asarray(weights, np.float64)
    if first.ndim != 1 or first.shape != second.shape or first.shape != counts.shape:
        raise ValueError(
            f"columns to compare must have one length, found shapes {first.shape}, {second.shape}, {counts.shape}"
        )
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError("row weights must be finite and at least 0")
    kept = counts > 0
    if not kept.all():
        first, second, counts = first[kept], second[kept], counts[kept]
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("columns to compare must be finite: leave unscored rows out or give them weight 0")
    return first, second, counts


def _clipped(correlation: Any) -> float:
    """Clip the correlation to ±1 against rounding."""
    return min(1.0, max(-1.0, float(correlation)))


def _squares(place: Places, counts: Vector) -> float:
    """Σ over tie groups of the squared weight of the group: twice its pairs, including those of a row with itself."""
    sizes = np.bincount(place, counts)
    return float(sizes @ sizes)


def _inversions(ranks: Places, counts: Vector) -> float:
    """Weight of the pairs in falling order: Σ over i < j with ranks[i] > ranks[j] of counts[i] counts[j].

    Two different numbers first differ in one binary digit, where the larger has a 1. So for each digit, among the rows
    that agree in all higher digits, each row with a 0 pairs with the rows with a 1 before it.
    """
    total = 0.0
    for digit in reversed(range(int(ranks.max()).bit_length())):
        prefix = ranks >> (digit + 1)
        order = np.argsort(prefix, kind="stable")
        ones = (ranks[order] >> digit) & 1
        ahead = np.cumsum(counts[order] * ones)
        starts = np.flatnonzero(np.diff(prefix[order], prepend=-1))
        before_group = np.append(0.0, ahead)[starts]
        group_sizes = np.diff(np.append(starts, len(ranks)))
        total += float((counts[order] * (1 - ones)) @ (ahead - np.repeat(before_group, group_sizes)))
    return total


def _membership(values: Vector, counts: Vector, k: float) -> Vector:
    """Return the fraction of each row that is among the `k` highest."""
    place = places(values)
    sizes = np.bincount(place, counts)
    above = counts.sum() - np.cumsum(sizes)
    membership: Vector = np.clip((k - above) / sizes, 0, 1)[place]
    return membership
