"""The least-squares problem of the weights: its checked rows, their sums by group, and its exact, bounded solution.

Minimise over w: w·G·w - 2 c·w + l2 ||w - prior||², subject to 0 <= w <= max_weight and Σw = 1. Here G is the weighted
mean of x·xᵀ and c the weighted mean of x·y: the first two terms are the mean squared error of x·w, up to a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import daqp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rc1_lib.errors import RC1Error
from rc1_lib.reward.intervals import group_numbers

Vector = NDArray[np.float64]
_ROUNDING = 1e-12
"""Differences below this are rounding errors."""
_AT_BOUND = 1e-9
"""The distance within which the solver's answer counts as on a bound; the refinement corrects a wrong guess."""
_REFINEMENTS = 20
"""Most corrections of the set of weights held at a bound. Nearly always the first one changes nothing."""
_EQUALITY = 5
"""DAQP's mark of an equality."""
_PROXIMAL_WEIGHT = 1e-3
"""Weight of DAQP's proximal term; the Hessian's entries are of order 1. It does not move the optimum."""
_OPTIMAL = 1
"""DAQP's status for an optimum."""


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
    """Rows left out because a criterion or the target is missing."""
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
            vary, or fewer usable rows than criteria.
    """
    x, y, names_of_groups = np.asarray(scores, np.float64), np.asarray(target, np.float64), np.asarray(groups)
    counts = np.ones(y.shape) if row_weights is None else np.asarray(row_weights, np.float64)
    beside = (names_of_groups, counts)
    if x.shape != (len(y), len(names)) or y.ndim != 1 or any(column.shape != y.shape for column in beside):
        raise RC1Error(
            f"scores of {len(names)} criteria must come with one target, group and row weight per row; found scores "
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
            f"{int(kept.sum())} usable rows are fewer than the {len(names)} criteria to weigh ({len(y)} rows, "
            f"{int((~scored).sum())} of them without a score): judge more dialogues or weigh fewer criteria"
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
    """Weights that solve the problem, and how far they are from its optimality conditions."""

    weights: Vector
    """Shape (d,): within the bounds, summing to 1, both to rounding."""
    kkt_residual: float
    """Largest absolute violation of any of the Karush-Kuhn-Tucker conditions; see `kkt_residual`."""


@dataclass(frozen=True)
class Problem:
    """The numbers of one problem; the top of this file states the objective."""

    hessian: Vector
    """Shape (d, d): 2 (G + l2 I)."""
    linear: Vector
    """Shape (d,): -2 (c + l2 prior)."""
    max_weight: float

    def gradient(self, weights: Vector) -> Vector:
        """Return the derivative of the objective at `weights`."""
        return self.hessian @ weights + self.linear


def solve(gram: Vector, moment: Vector, prior: Vector, *, l2: float, max_weight: float) -> Solution:
    """Solve the problem exactly; if many weights are optimal (singular gram, no l2), return one of them.

    DAQP (Arnström, Bemporad, Axehill, "A dual active-set solver for embedded quadratic programming using recursive LDLᵀ
    updates", 2022) says which weights are held at a bound; the others then solve a linear system, which makes the
    conditions hold to rounding instead of to a solver's tolerance.

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
            f"{d} weights of at most {max_weight:g} cannot sum to 1: weigh more criteria or raise the largest weight"
        )
    if l2 < 0 or not all(np.isfinite(part).all() for part in (gram, moment, prior)):
        raise RC1Error(f"cannot solve for the weights: all sums must be finite and l2 at least 0, found l2 {l2:g}")
    problem = Problem(2 * (gram + l2 * np.eye(d)), -2 * (moment + l2 * prior), max_weight)
    start = _first_answer(problem)
    at_zero, at_top = start <= _AT_BOUND, start >= max_weight - _AT_BOUND
    snapped = np.where(at_zero, 0.0, np.where(at_top, max_weight, start))
    best = Solution(snapped, _residual(problem, snapped))
    for _ in range(_REFINEMENTS):
        weights, slope = _with_bounds_held(problem, start, at_zero, at_top)
        residual = _residual(problem, np.clip(weights, 0, max_weight))
        if residual < best.kkt_residual:
            best = Solution(np.clip(weights, 0, max_weight), residual)
        # A primal-dual active-set step (Hintermüller, Ito, Kunisch 2003): hold weights that would leave the bounds, and
        # free those that are held although moving them inwards would lower the objective.
        zero_now, top_now = weights - slope < -_ROUNDING, weights - slope > max_weight + _ROUNDING
        if (zero_now == at_zero).all() and (top_now == at_top).all():
            break
        at_zero, at_top = zero_now, top_now
    return best


def kkt_residual(
    weights: Vector, gram: Vector, moment: Vector, prior: Vector, *, l2: float, max_weight: float
) -> float:
    """Return the largest absolute violation of the optimality conditions at `weights`.

    The conditions: stationarity (the gradient of the Lagrangian is 0), primal feasibility (bounds and sum), dual
    feasibility (no multiplier of a bound is negative) and complementarity (a multiplier is 0 unless its bound is met).
    The problem is convex, so weights with residual 0 are optimal.
    """
    identity = np.eye(len(weights))
    return _residual(Problem(2 * (gram + l2 * identity), -2 * (moment + l2 * prior), max_weight), weights)


def _first_answer(problem: Problem) -> Vector:
    d = len(problem.linear)
    sense = np.zeros(d + 1, np.int32)
    sense[d] = _EQUALITY
    weights, _, status, _ = daqp.solve(
        problem.hessian,
        problem.linear,
        np.ones((1, d)),
        np.append(np.full(d, problem.max_weight), 1.0),
        np.append(np.zeros(d), 1.0),
        sense,
        primal_tol=1e-11,
        # Proximal iterations, even if the gram is regular: without them DAQP drops nearly collinear directions.
        eps_prox=_PROXIMAL_WEIGHT,
        eta_prox=_ROUNDING,
    )
    if status != _OPTIMAL:
        raise RC1Error(f"cannot solve for the weights: the solver ended with status {status} instead of {_OPTIMAL}")
    return np.asarray(weights, np.float64)


def _with_bounds_held(
    problem: Problem, start: Vector, at_zero: NDArray[np.bool_], at_top: NDArray[np.bool_]
) -> tuple[Vector, Vector]:
    """Return the optimum with these bounds held, nearest to `start`, and the slope along each weight."""
    weights = np.where(at_zero, 0.0, np.where(at_top, problem.max_weight, start))
    free = np.flatnonzero(~(at_zero | at_top))
    shift = _shift(problem.gradient(weights), at_zero, at_top)
    if len(free):
        system = np.ones((len(free) + 1, len(free) + 1))
        system[:-1, :-1] = problem.hessian[np.ix_(free, free)]
        system[-1, -1] = 0
        for _ in range(2):
            # The second round removes the rounding errors of the first.
            wanted = np.append(-problem.gradient(weights)[free], 1 - weights.sum())
            answer = np.linalg.lstsq(system, wanted, rcond=_ROUNDING)[0]
            weights[free] += answer[:-1]
        shift = float(answer[-1])
    slope = problem.gradient(weights) + shift
    slope[free] = 0
    return weights, slope


def _shift(gradient: Vector, at_zero: NDArray[np.bool_], at_top: NDArray[np.bool_]) -> float:
    """Return the multiplier of the sum: added to the gradient, it comes closest to the conditions on the bounds."""
    # Weights at 0 need a slope of at least 0, weights at the upper bound one of at most 0, free weights both.
    least = np.max(-gradient[~at_top], initial=-np.inf)
    most = np.min(-gradient[~at_zero], initial=np.inf)
    if np.isinf(least) or np.isinf(most):
        return float(least if np.isinf(most) else most)
    return float(least + most) / 2


def _residual(problem: Problem, weights: Vector) -> float:
    at_zero, at_top = weights <= 0, weights >= problem.max_weight
    gradient = problem.gradient(weights)
    slope = gradient + _shift(gradient, at_zero, at_top)
    lower, upper = np.where(at_zero, slope, 0.0), np.where(at_top & ~at_zero, -slope, 0.0)
    violations = (
        np.abs(slope - lower + upper),
        np.abs(weights.sum() - 1),
        -weights,
        weights - problem.max_weight,
        -lower,
        -upper,
        np.abs(lower * weights),
        np.abs(upper * (problem.max_weight - weights)),
    )
    return float(max(np.max(part) for part in violations))
