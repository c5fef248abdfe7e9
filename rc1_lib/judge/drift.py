"""Test whether a judge still grades as before: compare old and new samples of the same dialogues with its own noise.

If nothing changed, all samples of a dialogue come from the same judge, and which are old and which new is chance. So a
permutation test within dialogues measures the noise (Good, "Permutation, Parametric, and Bootstrap Tests of
Hypotheses", 2005, ch. 3): it deals each dialogue's samples to the two sides again, in the same numbers, and computes
the medians again. It assumes no shape of the noise, and shows by how much medians move when nothing changed. Each
figure's bound lies as many of its own standard deviations away as the largest of all figures reaches in the given share
of the deals (Westfall and Young, "Resampling-Based Multiple Testing", 1993). So the false alarm rate holds for the
whole verdict, however many dimensions there are and however they correlate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rc1_lib.judge.noise import OVERALL

Floats = NDArray[np.float64]
DEALS = 20_000
"""Number of deals; the bound that one in a thousand exceeds then rests on twenty of them."""
_ALL_DEALS = 1000
"""Enumerate the ways to deal out a dialogue's samples up to this many; beyond that, draw this many at random."""
_CHUNK = 1000
"""Deals computed at once."""
_ROUNDING = 1e-9
"""Smaller differences count as zero: the same scores, added up in another order."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How far one dimension's medians have moved.

    Attributes:
        dimension: its name, or `OVERALL` for the mean of all.
        moved: new median minus old median, averaged over the dialogues.
        moved_bound: how far noise alone moves it, in either direction.
        apart: mean absolute difference of a dialogue's two medians; it also rises if dialogues move in opposite
            directions.
        apart_bound: how large noise alone makes it.
    """

    dimension: str
    moved: float
    moved_bound: float
    apart: float
    apart_bound: float


def shifts(
    before: Floats, now: Floats, dimensions: Sequence[str], *, false_alarms: float, seed: int, deals: int = DEALS
) -> list[Shift]:
    """Compare the samples of the same dialogues.

    Args:
        before: shape (dialogues, samples then, dimensions), in [0, 1].
        now: shape (dialogues, samples now, dimensions).
        dimensions: their names.
        false_alarms: share of comparisons of an unchanged judge in which any figure may exceed its bound, in (0, 1).
        seed: seed of the deals.
        deals: number of deals.

    Returns:
        One shift per dimension, then `OVERALL`; an empty list without dialogues.
    """
    if not len(before):
        return []
    rng = np.random.default_rng(seed)
    pooled = _with_overall(np.concatenate([before, now], axis=1))
    moves = _median_moves(pooled, before.shape[1], rng)
    drawn = _draw_deals(moves, deals, rng)
    centre, spread = drawn.mean(axis=0), drawn.std(axis=0)
    half = len(centre) // 2
    centre[:half] = 0.0  # noise moves medians to either side alike
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.where(spread > _ROUNDING, (drawn - centre) / spread, 0.0)
    far[:, :half] = np.abs(far[:, :half])
    most = float(np.quantile(far.max(axis=1), 1 - false_alarms, method="higher"))
    bound = centre + most * spread + _ROUNDING
    found = np.concatenate([moves[0].mean(axis=0), np.abs(moves[0]).mean(axis=0)])
    return [
        Shift(name, float(found[at]), float(bound[at]), float(found[half + at]), float(bound[half + at]))
        for at, name in enumerate((*dimensions, OVERALL))
    ]


def _with_overall(samples: Floats) -> Floats:
    """Append each sample's mean over the dimensions as a last dimension."""
    return np.concatenate([samples, samples.mean(axis=2, keepdims=True)], axis=2)


def _median_moves(pooled: Floats, then: int, rng: np.random.Generator) -> Floats:
    """Return each deal's difference of medians, shape (deals, dialogues, dimensions); the first is the real one."""
    samples = pooled.shape[1]
    if math.comb(samples, then) <= _ALL_DEALS:
        dealt = [list(chosen) for chosen in combinations(range(samples), then)]
    else:
        dealt = [list(range(then)), *(rng.permutation(samples)[:then].tolist() for _ in range(_ALL_DEALS - 1))]
    rest = [[sample for sample in range(samples) if sample not in chosen] for chosen in dealt]
    moves: Floats = np.stack(
        [np.median(pooled[:, b], axis=1) - np.median(pooled[:, a], axis=1) for a, b in zip(dealt, rest, strict=True)]
    )
    return moves


def _draw_deals(moves: Floats, deals: int, rng: np.random.Generator) -> Floats:
    """Draw deals, independently per dialogue: mean and mean absolute differences, shape (deals, 2 * dimensions)."""
    ways, dialogues = moves.shape[:2]
    drawn = []
    for first in range(0, deals, _CHUNK):
        chosen = rng.integers(ways, size=(min(_CHUNK, deals - first), dialogues))
        picked = moves[chosen, np.arange(dialogues)]
        drawn.append(np.concatenate([picked.mean(axis=1), np.abs(picked).mean(axis=1)], axis=1))
    return np.concatenate(drawn)
