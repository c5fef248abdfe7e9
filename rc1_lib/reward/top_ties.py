"""Ties at the border of the best tenth: how many rows share the score there, and how much that leaves to chance.

A judge that gives few grades leaves many dialogues on one score. Where such a group lies across the border of the top,
nothing says which of its rows belong to it. `rank_agreement.top_overlap` gives each the fraction that fits; here stands
what the overlap could be at least and at most, were the ties broken.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rc1_lib.reward.rank_agreement import top_membership, top_overlap

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Border:
    """The score at which a top set ends.

    Attributes:
        tied: rows on exactly this score, by their weight; 0 where the set ends between two scores.
        places: how many of them still fit.
    """

    tied: float
    places: float


@dataclass(frozen=True, slots=True)
class TopTies:
    """Two top sets and the ties at their borders.

    Attributes:
        size: of either set, in rows by their weight.
        old: the border by old score.
        new: the border by new reward.
        lowest: the smallest overlap that some way to break the ties gives, as a share of `size`.
        highest: the largest.
    """

    size: float
    old: Border
    new: Border
    lowest: float
    highest: float

    def arbitrary(self, threshold: float) -> bool:
        """Whether it depends on how the ties are broken, which side of the threshold the overlap lies on."""
        return self.lowest < threshold <= self.highest

    def in_words(self) -> str:
        """`old score: 37 tie for 12 of 24 places; new reward: no ties; overlap 0.3 to 0.81 however ties are broken`."""
        sides = ("old score", self.old), ("new reward", self.new)
        shown = [f"{name}: {_side(border, self.size)}" for name, border in sides]
        if self.old.tied or self.new.tied:
            shown.append(f"overlap {self.lowest:.2f} to {self.highest:.2f}, depending on how ties are broken")
        return "; ".join(shown)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def top_ties(old: ArrayLike, new: ArrayLike, share: float, weights: ArrayLike) -> TopTies:
    """Look at the borders of the top `share` by two scores.

    At most the two sets share what they do when either one's ties are broken by the other's score, at least when they
    are broken against it; rows that tie in both go first in the one and last in the other.

    Args:
        old: shape (n,), finite; higher is better.
        new: shape (n,), finite; higher is better.
        share: size of the top, in (0, 1].
        weights: shape (n,), how much each row counts, above 0 for at least one.
    """
    counts = np.asarray(weights, np.float64)
    one, other = np.asarray(old, np.float64), np.asarray(new, np.float64)
    forwards = np.arange(len(counts))
    highest = top_overlap(_broken(one, other, forwards), _broken(other, one, forwards), share, counts)
    lowest = top_overlap(_broken(one, -other, forwards), _broken(other, -one, -forwards), share, counts)
    by_old, by_new = _border(one, share, counts), _border(other, share, counts)
    return TopTies(share * float(counts.sum()), by_old, by_new, lowest, highest)


def _broken(scores: Vector, then_by: Vector, last_by: NDArray[np.intp]) -> Vector:
    """The rows' ranks by score, those that tie ordered by something else."""
    ranks = np.empty(len(scores))
    ranks[np.lexsort((last_by, then_by, scores))] = np.arange(len(scores))
    return ranks


def _border(scores: Vector, share: float, counts: Vector) -> Border:
    membership = top_membership(scores, share, counts)
    at = (membership > 0.0) & (membership < 1.0)
    if at.sum() < 2:
        return Border(0.0, 0.0)
    return Border(float(counts[at].sum()), float((counts * membership)[at].sum()))


def _side(border: Border, size: float) -> str:
    if not border.tied:
        return "no ties"
    return f"{border.tied:.4g} tie for {border.places:.4g} of the {size:.4g} places"
