"""How well a judge's scores agree with people's labels of the same dialogues, beyond chance.

Scores and labels are in [0, 1]. For comparison they are mapped to the same levels: two for a verdict (bad 0, good 1),
the steps of the scale for a score. Row weights are frequency weights, so that a dialogue with several labels counts
once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rc1_lib.reward.intervals import group_folds, group_numbers

Vector = NDArray[np.float64]
VERDICT = (0.0, 1.0)
"""The levels of a verdict."""
GOOD_AT = 0.5
"""A person's score from which a dialogue counts as good, if a verdict is derived from it."""


def on_levels(scores: ArrayLike, levels: tuple[float, ...], verdict_at: float) -> Vector:
    """Map each score to the nearest level; for a verdict, good from `verdict_at` on.

    Args:
        scores: shape (n,), in [0, 1].
        levels: in rising order.
        verdict_at: the judge's cut, used for verdicts only.
    """
    values = np.asarray(scores, np.float64)
    if levels == VERDICT:
        return (values >= verdict_at).astype(np.float64)
    steps = np.asarray(levels)
    return np.asarray(steps[np.abs(values[:, None] - steps).argmin(axis=1)], np.float64)


def kappa(judge: ArrayLike, people: ArrayLike, weights: ArrayLike) -> float:
    """Compute Cohen's kappa of two columns of levels with quadratic weights: 1 - observed / expected disagreement.

    For verdicts that is the plain kappa (Cohen, "A coefficient of agreement for nominal scales", Educational and
    Psychological Measurement 20, 1960); for scores the weighted one with quadratic weights (Cohen, "Weighted kappa",
    Psychological Bulletin 70, 1968), here written with moments, since the mean of (a - b)² over independent columns is
    E a² + E b² - 2 E a E b.

    Returns:
        At most 1; 0 if one column is constant; NaN if both are constant and equal, or without rows.
    """
    a, b, w = (np.asarray(column, np.float64) for column in (judge, people, weights))
    total = w.sum()
    if not total:
        return math.nan
    mean_a, mean_b = (w * a).sum() / total, (w * b).sum() / total
    observed = (w * (a - b) ** 2).sum() / total
    expected = (w * a**2).sum() / total + (w * b**2).sum() / total - 2 * mean_a * mean_b
    return float(1 - observed / expected) if expected > 1e-12 else math.nan


def same_level(judge: ArrayLike, people: ArrayLike, weights: ArrayLike) -> float:
    """Compute raw agreement: the share of labels with the judge's level; NaN without rows."""
    return share(np.isclose(np.asarray(judge, np.float64), np.asarray(people, np.float64)), weights)


def share(chosen: ArrayLike, weights: ArrayLike) -> float:
    """Compute the weighted mean of a column (for booleans, the share that is true); NaN without rows."""
    values, w = np.asarray(chosen, np.float64), np.asarray(weights, np.float64)
    total = w.sum()
    return float((w * values).sum() / total) if total else math.nan


def people_among_themselves(labels: ArrayLike, dialogues: ArrayLike) -> float:
    """Krippendorff's alpha with squared differences: how well people agree if several labelled one dialogue.

    No judge can be expected to agree with people better than they do with each other.

    Source: Krippendorff, "Content Analysis" (2nd ed. 2004), chapter 11.

    Returns:
        At most 1; NaN if no dialogue has two labels, or all labels are the same.
    """
    values = np.asarray(labels, np.float64)
    number, count = group_numbers(dialogues)
    sizes = np.bincount(number, minlength=count)[number]
    values, number, sizes = values[sizes > 1], number[sizes > 1], sizes[sizes > 1]
    n = len(values)
    if n < 2:
        return math.nan
    # Σ over ordered pairs (a - b)² of m values is 2 (m Σa² - (Σa)²).
    sums, squares = np.bincount(number, values), np.bincount(number, values**2)
    held = np.bincount(number)
    kept = held > 1
    within = (2 * (held * squares - sums**2)[kept] / (held[kept] - 1)).sum() / n
    between = 2 * (n * (values**2).sum() - values.sum() ** 2) / (n * (n - 1))
    return float(1 - within / between) if between > 1e-12 else math.nan


@dataclass(frozen=True, slots=True)
class Errors:
    """How often the judge is right about dialogues that people call good, and about those that they call bad.

    Attributes:
        sensitivity: share of the good dialogues that the judge calls good.
        specificity: share of the bad ones that it calls bad.
    """

    sensitivity: float
    specificity: float


def judge_errors(judged_good: ArrayLike, people_good: ArrayLike, weights: ArrayLike) -> Errors:
    """Estimate the judge's errors on labelled dialogues; NaN if there are no good ones, or no bad ones."""
    judged, people = np.asarray(judged_good, np.bool_), np.asarray(people_good, np.bool_)
    w = np.asarray(weights, np.float64)
    return Errors(share(judged, w * people), share(~judged, w * ~people))


def corrected_share(apparent: float, errors: Errors) -> float:
    """Correct the share of dialogues that the judge calls good: (p + Sp - 1) / (Se + Sp - 1), in [0, 1].

    Source: Rogan and Gladen, "Estimating prevalence from the results of a screening test", American Journal of
    Epidemiology 107 (1978).

    Returns:
        NaN if the judge is no better than chance (Se + Sp at most 1), so that nothing can be corrected.
    """
    informed = errors.sensitivity + errors.specificity - 1
    if not informed > 0:
        return math.nan
    return min(1.0, max(0.0, (apparent + errors.specificity - 1) / informed))


def matched_cut(scores: ArrayLike, people_good: ArrayLike, weights: ArrayLike) -> float:
    """Find the cut at which the judge calls as many dialogues good as people do, as closely as ties allow; else NaN."""
    values, w = np.asarray(scores, np.float64), np.asarray(weights, np.float64)
    if not w.sum():
        return math.nan
    cuts, place = np.unique(values, return_inverse=True)
    above = np.cumsum(np.bincount(place, w)[::-1])[::-1] / w.sum()
    return float(cuts[np.abs(above - share(people_good, w)).argmin()])


def kappa_at_matched_cut(
    scores: ArrayLike, people_good: ArrayLike, weights: ArrayLike, groups: ArrayLike, *, folds: int, seed: int
) -> float:
    """Kappa of verdicts with a cut matched on the other folds' dialogues: is the cut wrong, or the order?

    Returns:
        NaN for fewer groups than folds, or if kappa is undefined.
    """
    values, good, w = np.asarray(scores, np.float64), np.asarray(people_good, np.bool_), np.asarray(weights, np.float64)
    number, count = group_numbers(groups)
    if count < folds:
        return math.nan
    fold = group_folds(np.bincount(number, w, minlength=count).astype(np.float64), folds, seed)[number]
    judged = np.zeros(len(values), np.bool_)
    for held_out in range(folds):
        own = fold == held_out
        judged[own] = values[own] >= matched_cut(values[~own], good[~own], w[~own])
    return kappa(judged, good, w)
