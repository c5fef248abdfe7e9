"""Whether a judge still grades as it did: its samples of the same dialogues, then and now, compared with its own noise.

Had nothing changed, all samples of a dialogue would be draws of the same judge, and which of them were drawn then and
which now would be chance. So the noise is measured by dealing each dialogue's samples out again, as many to either side
as there were (a permutation test within dialogues: Good, "Permutation, Parametric, and Bootstrap Tests of Hypotheses",
2005, ch. 3), with the medians taken again each time. It needs no shape of the noise, and it says by how much medians
move when nothing changed. Every figure's bound is as many of its own standard deviations away as the largest of all
figures reaches in the given share of the deals (Westfall and Young, "Resampling-Based Multiple Testing", 1993): the
rate of false alarms is that of the whole verdict, however many dimensions there are and however they hang together.
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
"""How often the samples are dealt out: the bound that one in a thousand exceeds then rests on twenty deals."""
_ALL_DEALS = 1000
"""Up to so many ways to deal out a dialogue's samples all are looked at, beyond that so many drawn ones."""
_CHUNK = 1000
"""Deals looked at together."""
_ROUNDING = 1e-9
"""A difference this small is none: medians of the same scores, added up in another order."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How far one dimension's medians have moved.

    Attributes:
        dimension: which, or `OVERALL` for the mean of all.
        moved: mean over the dialogues of the median now less the median then.
        moved_bound: how far noise alone moves it, to either side.
        apart: mean distance of the two medians of a dialogue: it rises too where dialogues move against each other.
        apart_bound: how far apart noise alone brings them.
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
        deals: how often all samples are dealt out again.
        seed: of the deals.

    Returns:
        A shift a dimension, and `OVERALL` last; none without dialogues.
    """
    if not len(before):
        return []
    rng = np.random.default_rng(seed)
    pooled = _with_overall(np.concatenate([before, now], axis=1))
    moves = _moves(pooled, before.shape[1], rng)
    drawn = _drawn(moves, deals, rng)
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
    """The dimensions and, last, each sample's mean over them."""
    return np.concatenate([samples, samples.mean(axis=2, keepdims=True)], axis=2)


def _moves(pooled: Floats, then: int, rng: np.random.Generator) -> Floats:
    """Shape (deals, dialogues, dimensions): the medians' difference when samples are dealt out so; first as it was."""
    samples = pooled.shape[1]
    if math.comb(samples, then) <= _ALL_DEALS:
        dealt = [list(chosen) for chosen in combinations(range(samples), then)]
    else:
        dealt = [list(range(then)), *(rng.permutation(samples)[:then].tolist() for _ in range(_ALL_DEALS - 1))]
    rest = [[place for place in range(samples) if place not in chosen] for chosen in dealt]
    moves: Floats = np.stack(
        [np.median(pooled[:, b], axis=1) - np.median(pooled[:, a], axis=1) for a, b in zip(dealt, rest, strict=True)]
    )
    return moves


def _drawn(moves: Floats, deals: int, rng: np.random.Generator) -> Floats:
    """Shape (deals, 2 * dimensions): mean difference and mean distance, each dialogue dealt out by itself."""
    ways, dialogues = moves.shape[:2]
    drawn = []
    for first in range(0, deals, _CHUNK):
        chosen = rng.integers(ways, size=(min(_CHUNK, deals - first), dialogues))
        picked = moves[chosen, np.arange(dialogues)]
        drawn.append(np.concatenate([picked.mean(axis=1), np.abs(picked).mean(axis=1)], axis=1))
    return np.concatenate(drawn)
