"""Ties at the border of the top, against every way to break them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from rc1_lib.reward.rank_agreement import top_overlap
from rc1_lib.reward.top_ties import Border, TopTies, top_ties

Vector = NDArray[np.float64]


def every_top(scores: Vector, k: int) -> list[set[int]]:
    """Return all sets of k rows that can be the top, over all ways to break ties."""
    border = np.sort(scores)[::-1][k - 1]
    above, on = set(np.flatnonzero(scores > border)), np.flatnonzero(scores == border)
    return [above | set(chosen) for chosen in combinations(on, k - len(above))]


def test_the_overlap_is_between_the_extremes_over_all_ways_to_break_ties() -> None:
    rng = np.random.default_rng(11)
    moved = 0
    for _ in range(200):
        old, new = (rng.integers(0, int(rng.integers(1, 6)) + 1, 12) / 3 for _ in range(2))
        k = int(rng.integers(1, 7))
        found = top_ties(old, new, k / 12, np.ones(12))
        shared = [len(one & other) / k for one in every_top(old, k) for other in every_top(new, k)]
        assert (found.lowest, found.highest) == (pytest.approx(min(shared)), pytest.approx(max(shared)))
        assert found.lowest - 1e-9 <= top_overlap(old, new, k / 12) <= found.highest + 1e-9
        moved += min(shared) < max(shared)
    assert moved > 100


def test_the_border_counts_tied_rows_and_the_places_left_for_them() -> None:
    old = np.array([9, 5, 5, 5, 5, 1, 1, 1, 1, 1.0])
    found = top_ties(old, np.arange(10.0), 0.3, np.ones(10))
    assert (found.old, found.new) == (Border(4, pytest.approx(2)), Border(0, 0))
    assert found.in_words() == (
        "old score: 4 tie for 2 of the 3 places; new reward: no ties; "
        "overlap 0.00 to 0.00, depending on how ties are broken"
    )
    assert top_ties(old, old, 0.5, np.ones(10)).in_words() == "old score: no ties; new reward: no ties"


@pytest.mark.parametrize(("lowest", "highest", "is_arbitrary"), [(0.3, 0.8, True), (0.7, 1, False), (0.2, 0.69, False)])
def test_ties_are_arbitrary_if_they_decide_the_verdict(lowest: float, highest: float, is_arbitrary: bool) -> None:
    assert TopTies(10, Border(5, 2), Border(0, 0), lowest, highest).arbitrary(0.7) is is_arbitrary
