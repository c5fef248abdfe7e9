"""Ties at the border of the top tenth: how many rows share the score there, and how much that leaves to chance.

A judge with few grades gives many dialogues the same score. If such a group crosses the border of the top, it is
undecided which of its rows belong to it. `rank_agreement.top_overlap` gives each the fraction that fits; this module
computes the smallest and largest possible overlap if the ties were broken.
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
    """The border of a top set.

    Attributes:
        tied: weight of the rows with exactly the border's score; 0 if the set ends between two scores.
        places: how many of them still fit.
    """

    tied: float
    places: float


@dataclass(frozen=True, slots=True)
class TopTies:
    """Two top sets and the ties at their borders.

    Attributes:
        size: of each set, in weighted rows.
        old: the border by old score.
        new: the border by new reward.
        lowest: the smallest overlap that any way of breaking the ties gives, as a share of `size`.
    """

    size: float
    old: Border
    new: Border
    lowest: float
    highest: float

    def arbitrary(self, threshold: float) -> bool:
        """Whether the side of the threshold on which the overlap lies depends on how ties are broken."""
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
    """Find the borders of the top `share` by two scores.

    The overlap is largest if each score's ties are broken by the other score, and smallest if they are broken against
    it; rows that tie in both then come first in one and last in the other.

    Args:
        old: shape (n,), finite; higher is better.
        new: shape (n,), finite; higher is better.
        share: size of the top, in (0, 1].
        weights: shape (n,), the rows' weights, above 0 for at least one.
    """
    counts = np.asarray(weights, np.float64)
    one, other = np.asarray(old, np.float64), np.asarray(new, np.float64)
    forwards = np.arange(len(counts))
    highest = top_overlap(_broken(one, other, forwards), _broken(other, one, forwards), share, counts)
    lowest = top_overlap(_broken(one, -other, forwards), _broken(other, -one, -forwards), share, counts)
    by_old, by_new = _border(one, share, counts), _border(other, share, counts)
    return TopTies(share * float(counts.sum()), by_old, by_new, lowest, highest)


def _broken(scores: Vector, then_by: Vector, last_by: NDArray[np.intp]) -> Vector:
    """Rank the rows by score, with ties ordered by a second key."""
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
