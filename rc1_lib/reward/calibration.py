"""Calibrated weights: bounded least squares, evaluated on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rc1_lib.errors import RC1Error
from rc1_lib.reward.intervals import Interval, draw_counts, group_folds, percentile_interval
from rc1_lib.reward.rank_agreement import (
    drop_pct,
    improvement_pct,
    mean_absolute_error,
    pairs_in_order,
    places,
    rank_correlation,
    without_rounding_noise,
)
from rc1_lib.reward.weight_fit import (
    CalibrationRows,
    GroupSums,
    Solution,
    solve,
    usable_rows,
)

Vector = NDArray[np.float64]

BASELINES = ("old", "equal")
"""The baselines of the calibrated weights: the prior, and equal weights."""


@dataclass(frozen=True)
class Fold:
    """One fold of the cross-validation: fitted on the other folds, evaluated on its own rows."""

    rows: int
    groups: int
    weights: dict[str, float]
    """The weights fitted to the other folds' rows."""
    spearman: dict[str, float]
    """Rank correlation with the target on this fold's rows, of the scores `calibrated`, `equal` and `old`."""
    mae: dict[str, float]
    """Mean absolute error against the target, of the same three."""
    auc: dict[str, float]
    """Share of success/failure pairs in the right order, of the same three; NaN if the target is not success."""


@dataclass(frozen=True)
class Calibration:
    """Weights, their quality on held-out rows, and the uncertainty of both."""

    names: tuple[str, ...]
    weights: dict[str, float]
    """Fitted on all usable rows."""
    kkt_residual: float
    """Distance of `weights` from the optimum; see `rc1_lib.reward.weight_fit.kkt_residual`."""
    refits_kkt_residual: float
    """The largest such distance over all fits of folds and resamples."""
    rows: int
    """Usable rows: scored, and of a weight above 0."""
    unscored: int
    """Rows left out because a score or the target is missing."""
    weightless: int
    """Scored rows left out because their weight is 0."""
    constant: dict[str, float]
    """Dimensions with one score in all usable rows, which cannot distinguish rows, and that score."""
    groups: int
    folds: tuple[Fold, ...]
    median_spearman: dict[str, float]
    """Median over the folds, of the scores `calibrated`, `equal` and `old`."""
    mae: dict[str, float]
    """Mean absolute error over the held-out rows of all folds, of the same three."""
    median_auc: dict[str, float]
    """Median over the folds, of the same three."""
    improve_pct_vs_old: float
    """By how many per cent the calibrated median rank correlation exceeds that of the old weights."""
    improve_pct_vs_equal: float
    mae_drop_pct_vs_old: float
    """By how many per cent the calibrated mean absolute error is below that of the old weights."""
    mae_drop_pct_vs_equal: float
    unpulled: dict[str, float]
    """`improve_pct_vs_old` and `mae_drop_pct_vs_old` of weights fitted without the pull towards the prior, on the same
    usable rows: how much the dimensions can explain, regardless of the pull and the number of rows. These are least
    squares fits, so a little more may be possible."""
    intervals: dict[str, Interval]
    """`weight.<name>`, `auc`, and `spearman_gain_vs_<b>`, `improve_pct_vs_<b>`, `mae_drop_pct_vs_<b>` for the
    baselines b.

    Each resample of groups is fitted again; weights come from that fit, gains from the groups that it did not draw.
    Those are about 37 % of the groups, so the intervals of gains are wider than they would be on all rows, which is
    the careful side. `value` is the figure from all rows (weights) or from the folds (gains).
    """

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with null for undefined numbers."""
        known: dict[str, Any] = _without_nan(asdict(self))
        return known


def calibrate_weights(
    scores: ArrayLike,
    target: ArrayLike,
    groups: ArrayLike,
    *,
    names: Sequence[str],
    prior: Mapping[str, float],
    l2: float,
    max_weight: float,
    cv: int,
    boot: int,
    seed: int,
    row_weights: ArrayLike | None = None,
    confidence: float,
    progress: Callable[[int, int], None] | None = None,
) -> Calibration:
    """Fit weights w of the dimensions so that the weighted sum of a row's scores approximates its target.

    Minimises Σ r (x·w - y)² / Σ r + l2 ||w - prior||² subject to 0 <= w <= max_weight and Σ w = 1, with row weights r.

    Args:
        scores: shape (n, d), in [0, 1]; NaN without a score. Rows with a NaN are left out and counted.
        target: shape (n,), in [0, 1]; NaN if unknown.
        groups: shape (n,), the source question of each row; groups stay whole in folds and resamples.
        names: the d dimensions, in the order of the columns.
        prior: the old weights by name; other dimensions have prior 0.
        l2: strength of the pull towards the prior.
        max_weight: upper bound of each weight.
        boot: resamples of groups, each fitted again.
        seed: decides folds and resamples; the same rows and seed give the same calibration.
        row_weights: shape (n,), at least 0, as frequency weights; without them every row counts once.
        confidence: of the intervals, in (0, 1).
        progress: called with (fits done, fits in all).

    Raises:
        RC1Error: for fewer usable rows than dimensions, fewer groups than folds, bounds that no weights can meet,
            numbers outside [0, 1], a target that does not vary, or a prior that names unknown dimensions.
    """
    before = _prior_vector(names, prior)
    rows = usable_rows(scores, target, groups, row_weights, names)
    judge, sums = _Judge(rows, before), GroupSums.of(rows)
    total = 1 + cv + boot

    def fit(times: NDArray[Any], done: int) -> Solution:
        solution = solve(*sums.means(times), before, l2=l2, max_weight=max_weight)
        if progress is not None:
            progress(done, total)
        return solution

    def named(weights: Vector) -> dict[str, float]:
        return dict(zip(names, weights.tolist(), strict=True))

    final = fit(np.ones(rows.groups), 1)
    free = solve(*sums.means(np.ones(rows.groups)), before, l2=0.0, max_weight=max_weight)
    correlations, mae, _ = judge(np.ones(len(rows.target), np.bool_), free.weights)
    unpulled = _gains(correlations, mae)
    # Successes are spread evenly: if they are few, a fold without any could not be evaluated.
    sizes: Vector = np.bincount(rows.group, rows.weights, minlength=rows.groups).astype(np.float64)
    means = np.bincount(rows.group, rows.weights * rows.target, minlength=rows.groups) / np.maximum(sizes, 1e-12)
    fold_of = group_folds(sizes, cv, seed, (means > np.average(means, weights=sizes)).astype(np.intp))
    folds, errors, residuals = [], [], []
    for number in range(cv):
        held_out = (fold_of == number)[rows.group]
        solution = fit(fold_of != number, 2 + number)
        correlations, mae, auc = judge(held_out, solution.weights)
        size = int(held_out.sum())
        folds.append(Fold(size, int((fold_of == number).sum()), named(solution.weights), correlations, mae, auc))
        errors.append({name: value * rows.weights[held_out].sum() for name, value in mae.items()})
        residuals.append(solution.kkt_residual)
    medians = {name: float(np.median([fold.spearman[name] for fold in folds])) for name in folds[0].spearman}
    aucs = {name: float(np.median([fold.auc[name] for fold in folds])) for name in folds[0].auc}
    overall = {name: float(sum(error[name] for error in errors) / rows.weights.sum()) for name in folds[0].mae}

    # A separate random stream: the resamples stay the same when the number of folds changes.
    rng = np.random.default_rng([seed, 1])
    drawn_weights, drawn_gains, drawn_aucs = [], [], []
    for number in range(boot):
        times = draw_counts(rng, rows.groups)
        solution = fit(times, 2 + cv + number)
        drawn_weights.append(solution.weights)
        correlations, mae, auc = judge((times == 0)[rows.group], solution.weights)
        drawn_gains.append(_gains(correlations, mae))
        drawn_aucs.append(auc["calibrated"])
        residuals.append(solution.kkt_residual)
    gains = _gains(medians, overall)
    intervals = {
        f"weight.{name}": percentile_interval(final.weights[column], [w[column] for w in drawn_weights], confidence)
        for column, name in enumerate(names)
    } | {name: percentile_interval(value, [g[name] for g in drawn_gains], confidence) for name, value in gains.items()}
    intervals["auc"] = percentile_interval(aucs["calibrated"], drawn_aucs, confidence)
    return Calibration(
        names=tuple(names),
        weights=named(final.weights),
        kkt_residual=final.kkt_residual,
        refits_kkt_residual=float(np.max(residuals)),
        rows=len(rows.target),
        unscored=rows.unscored,
        weightless=rows.weightless,
        constant={
            name: float(column[0])
            for name, column in zip(names, rows.scores.T, strict=True)
            if (column == column[0]).all()
        },
        groups=rows.groups,
        folds=tuple(folds),
        median_spearman=medians,
        mae=overall,
        median_auc=aucs,
        improve_pct_vs_old=gains["improve_pct_vs_old"],
        improve_pct_vs_equal=gains["improve_pct_vs_equal"],
        mae_drop_pct_vs_old=gains["mae_drop_pct_vs_old"],
        mae_drop_pct_vs_equal=gains["mae_drop_pct_vs_equal"],
        unpulled={name: unpulled[name] for name in ("improve_pct_vs_old", "mae_drop_pct_vs_old")},
        intervals=intervals,
    )


def _prior_vector(names: Sequence[str], prior: Mapping[str, float]) -> Vector:
    """Return the prior in the order of `names`, 0 for names that it lacks.

    Raises:
        RC1Error: for a repeated name, or a prior with an unknown dimension.
    """
    if len(set(names)) < len(names):
        raise RC1Error(f"each dimension must be named once, found {', '.join(names)}")
    if unknown := sorted(set(prior) - set(names)):
        raise RC1Error(
            f"the old weights name {', '.join(unknown)}, which is not among the dimensions to weigh "
            f"({', '.join(names)}): correct the name or score the dimension"
        )
    return np.array([prior.get(name, 0.0) for name in names])


class _Judge:
    """Evaluates weights on held-out rows. The target and the baselines are ranked once, not for every resample."""

    def __init__(self, rows: CalibrationRows, old: Vector) -> None:
        self.rows = rows
        self.target = places(rows.target)
        self.of_success = bool(np.isin(rows.target, (0.0, 1.0)).all())
        weights = {"equal": np.full(len(old), 1 / len(old)), "old": old}
        self.sums = {name: _weighted_sums(rows.scores, part) for name, part in weights.items()}
        self.places = {name: places(values) for name, values in self.sums.items()}

    def __call__(
        self, held_out: NDArray[np.bool_], calibrated: Vector
    ) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Rank correlation, mean absolute error and AUC on the held-out rows, of calibrated, equal and old weights."""
        picked = np.flatnonzero(held_out)
        target, ordered, counts = self.rows.target[picked], self.target[picked], self.rows.weights[picked]
        fitted = _weighted_sums(self.rows.scores[picked], calibrated)
        sums = {"calibrated": fitted, **{name: values[picked] for name, values in self.sums.items()}}
        place = {"calibrated": places(fitted), **{name: found[picked] for name, found in self.places.items()}}
        correlations = {name: rank_correlation(found, ordered, counts) for name, found in place.items()}
        auc = {
            name: pairs_in_order(found, target, counts) if self.of_success else math.nan
            for name, found in place.items()
        }
        mae = {name: mean_absolute_error(values, target, counts) for name, values in sums.items()}
        return correlations, mae, auc


def _weighted_sums(scores: Vector, weights: Vector) -> Vector:
    return without_rounding_noise(np.einsum("nd,d->n", scores, weights))


def _gains(correlations: Mapping[str, float], mae: Mapping[str, float]) -> dict[str, float]:
    gains = {}
    for base in BASELINES:
        gains[f"spearman_gain_vs_{base}"] = correlations["calibrated"] - correlations[base]
        gains[f"improve_pct_vs_{base}"] = improvement_pct(correlations["calibrated"], correlations[base])
        gains[f"mae_drop_pct_vs_{base}"] = drop_pct(mae["calibrated"], mae[base])
    return gains


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
