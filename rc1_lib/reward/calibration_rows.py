"""The checked rows of a calibration: scores per criterion, target, groups, row weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rc1_lib.errors import RC1Error
from rc1_lib.reward.intervals import group_numbers

Vector = NDArray[np.float64]


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


def prior_vector(names: Sequence[str], prior: Mapping[str, float]) -> Vector:
    """The prior in the order of `names`, 0 for names that it lacks.

    Raises:
        RC1Error: for a repeated name, or a prior with an unknown criterion.
    """
    if len(set(names)) < len(names):
        raise RC1Error(f"each criterion must be named once, found {', '.join(names)}")
    if unknown := sorted(set(prior) - set(names)):
        raise RC1Error(
            f"the old weights name {', '.join(unknown)}, which is not among the criteria to weigh "
            f"({', '.join(names)}): correct the name or score the criterion"
        )
    return np.array([prior.get(name, 0.0) for name in names])


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
        _in_unit_interval(column, values[~np.isnan(values)])
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


def _in_unit_interval(column: str, values: Vector) -> None:
    outside = values[(values < 0) | (values > 1)]
    if len(outside):
        raise RC1Error(
            f"{column} must be in [0, 1], found {outside[0]:g} ({len(outside)} of {len(values)} rows are outside): "
            "scale it"
        )
