"""The least-squares problem of the weights: its checked rows, their sums by group, and its bounded solution.

Minimise over w: w·G·w - 2 c·w + l2 ||w - prior||², subject to 0 <= w <= max_weight and Σw = 1. Here G is the weighted
mean of x·xᵀ and c the weighted mean of x·y: the first two terms are the mean squared error of x·w, up to a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, lsq_linear

from rc1_lib.errors import RC1Error
from rc1_lib.reward.intervals import group_numbers

Vector = NDArray[np.float64]
_ROUNDING = 1e-12
"""Differences below this are rounding errors."""
_SINGULAR = 1e-15
"""Share of the largest eigenvalue below which a direction counts as one that the rows do not determine."""
_SUM = 100.0
"""Weight of the row of the sum; the other rows are of order 1. It does not move the optimum."""
_ROUNDS, _STEPS = 30, 100
"""Most corrections of the sum, of which two or three are needed, and most active-set steps for each dimension."""
_TOLERANCE = 1e-15


@dataclass(frozen=True)
class CalibrationRows:
    """The usable rows and what was left out."""

    scores: Vector
    """Shape (n, d), in [0, 1]."""
    target: Vector
    """Shape (n,), in [0, 1], not constant."""
    weights: Vector
    """Shape (n,), above 0: the rows' weights."""
    group: NDArray[np.intp]
    """Shape (n,): number of the row's group, from 0."""
    groups: int
    unscored: int
    """Rows left out because a dimension or the target is missing."""
    weightless: int
    """Scored rows left out because their weight is 0."""


@dataclass(frozen=True)
class GroupSums:
    """What least squares needs, summed up per group, so that a resample of groups is a weighted sum of these.

    Sums avoid BLAS: its threads cost far more than they gain on such narrow matrices, especially on shared processors.
    """

    products: Vector
    """Shape (d (d + 1) / 2, groups): Σ r x_i x_j, for the pairs i <= j."""
    moments: Vector
    """Shape (d, groups): Σ r x_i y."""
    weights: Vector
    """Shape (groups,): Σ r."""

    @classmethod
    def of(cls, rows: CalibrationRows) -> GroupSums:
        """Sum the rows up."""

        def summed(column: Vector) -> Vector:
            return np.bincount(rows.group, rows.weights * column, minlength=rows.groups).astype(np.float64)

        columns = np.ascontiguousarray(rows.scores.T)
        upper = zip(*np.triu_indices(len(columns)), strict=True)
        return cls(
            np.array([summed(columns[i] * columns[j]) for i, j in upper]),
            np.array([summed(column * rows.target) for column in columns]),
            summed(np.ones(len(rows.target))),
        )

    def means(self, times: NDArray[Any]) -> tuple[Vector, Vector]:
        """The weighted means of x·xᵀ, shape (d, d), and of x·y, shape (d,), with group g counted `times[g]` times."""
        counts = times.astype(np.float64)
        total = float((self.weights * counts).sum())
        d = len(self.moments)
        gram = np.empty((d, d))
        upper = np.triu_indices(d)
        gram[upper] = np.einsum("pg,g->p", self.products, counts) / total
        gram.T[upper] = gram[upper]
        return gram, np.einsum("dg,g->d", self.moments, counts) / total


def usable_rows(
    scores: ArrayLike,
    target: ArrayLike,
    groups: ArrayLike,
    row_weights: ArrayLike | None,
    names: Sequence[str],
) -> CalibrationRows:
    """Check the columns and keep the scored rows with a weight above 0.

    Raises:
        RC1Error: for columns of different lengths, numbers outside [0, 1], negative row weights, a target that does not
            vary, or fewer usable rows than dimensions.
    """
    x, y, names_of_groups = np.asarray(scores, np.float64), np.asarray(target, np.float64), np.asarray(groups)
    counts = np.ones(y.shape) if row_weights is None else np.asarray(row_weights, np.float64)
    beside = (names_of_groups, counts)
    if x.shape != (len(y), len(names)) or y.ndim != 1 or any(column.shape != y.shape for column in beside):
        raise RC1Error(
            f"scores of {len(names)} dimensions must come with one target, group and row weight per row; found scores "
            f"{x.shape}, target {y.shape}, groups {names_of_groups.shape}, row weights {counts.shape}"
        )
    scored = ~(np.isnan(x).any(axis=1) | np.isnan(y))
    for column, values in [*zip(names, x.T, strict=True), ("the target", y)]:
        outside = values[(values < 0) | (values > 1)]  # NaN is neither
        if len(outside):
            raise RC1Error(
                f"{column} must be in [0, 1], found {outside[0]:g} ({len(outside)} of {np.sum(~np.isnan(values))} rows "
                f"are outside): scale it"
            )
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise RC1Error("row weights must be finite numbers of at least 0")
    kept = scored & (counts > 0)
    if kept.sum() < len(names):
        raise RC1Error(
            f"{int(kept.sum())} usable rows are fewer than the {len(names)} dimensions to weigh ({len(y)} rows, "
            f"{int((~scored).sum())} of them without a score): judge more dialogues or weigh fewer dimensions"
        )
    if y[kept].min() == y[kept].max():
        raise RC1Error(
            f"the target is {y[kept][0]:g} in all {int(kept.sum())} usable rows, so no weights can distinguish good "
            f"from bad dialogues: calibrate on dialogues of both outcomes"
        )
    group, count = group_numbers(names_of_groups[kept])
    return CalibrationRows(
        x[kept],
        y[kept],
        counts[kept],
        group,
        count,
        int((~scored).sum()),
        int((scored & (counts == 0)).sum()),
    )


@dataclass(frozen=True)
class Solution:
    """Weights that solve the problem, and how far they are from its optimum."""

    weights: Vector
    """Shape (d,): within the bounds, summing to 1 to rounding."""
    kkt_residual: float
    """See `kkt_residual`."""


def solve(gram: Vector, moment: Vector, prior: Vector, *, l2: float, max_weight: float) -> Solution:
    """Solve the problem; if many weights are optimal (singular gram, no l2), return one of them.

    SciPy's active-set method finds which weights are held at a bound. It knows no sum, so the sum is one more row of
    the least squares, whose target is moved until the weights meet it (the method of multipliers).

    Args:
        gram: shape (d, d), weighted mean of x·xᵀ.
        moment: shape (d,), weighted mean of x·y.
        prior: shape (d,), the target of the pull l2.
        l2: strength of the pull, at least 0.
        max_weight: upper bound of each weight.

    Raises:
        RC1Error: when the bounds allow no weights that sum to 1, or a number is not finite.
    """
    d = len(moment)
    if max_weight * d < 1 - _ROUNDING:
        raise RC1Error(
            f"{d} weights of at most {max_weight:g} cannot sum to 1: weigh more dimensions or raise the largest weight"
        )
    if l2 < 0 or not all(np.isfinite(part).all() for part in (gram, moment, prior)):
        raise RC1Error(f"cannot solve for the weights: all sums must be finite and l2 at least 0, found l2 {l2:g}")
    values, vectors = np.linalg.eigh(gram + l2 * np.eye(d))
    known = values > _SINGULAR * max(float(values[-1]), _SINGULAR)
    roots, directions = np.sqrt(values[known]), vectors.T[known]
    rows = np.vstack([roots[:, None] * directions, np.full(d, _SUM)])
    target = np.append(directions @ (moment + l2 * prior) / roots, _SUM)
    for _ in range(_ROUNDS):
        found = lsq_linear(rows, target, bounds=(0, max_weight), method="bvls", tol=_TOLERANCE, max_iter=_STEPS * d)
        missing = 1 - float(found.x.sum())
        if abs(missing) < _TOLERANCE:
            break
        target[-1] += _SUM * missing
    weights: Vector = np.clip(found.x, 0, max_weight)
    return Solution(weights, kkt_residual(weights, gram, moment, prior, l2=l2, max_weight=max_weight))


def kkt_residual(
    weights: Vector, gram: Vector, moment: Vector, prior: Vector, *, l2: float, max_weight: float
) -> float:
    """Return the largest change of a weight by one step down the gradient and back into the bounds and the sum.

    The problem is convex, so the weights are optimal exactly if the step changes nothing: that is another way to write
    the Karush-Kuhn-Tucker conditions.
    """
    step = weights - 2 * (gram @ weights - moment + l2 * (weights - prior))

    def excess(shift: float) -> float:
        return float(np.clip(step - shift, 0, max_weight).sum()) - 1

    highest, lowest = float(step.max()), float(step.min()) - max_weight
    shift = brentq(excess, lowest, highest, xtol=_TOLERANCE) if excess(lowest) > 0 else lowest
    return float(np.abs(weights - np.clip(step - shift, 0, max_weight)).max())
