"""Calibration: the new weights order held-out dialogues better than the old ones and predict success more closely."""

from __future__ import annotations

import math

import numpy as np

from rc1_lib.calibration.shadow_checks import constant_shown, gain_wanted, none_stuck, pairs_for, room_shown
from rc1_lib.checks import above, at_least, at_most, equal, info
from rc1_lib.config.thresholds import CalibrationGate, SharedThresholds, WeightsGate
from rc1_lib.records import GateResult
from rc1_lib.reward.calibration import Calibration
from rc1_lib.reward.intervals import interval_in_words

_MAX_KKT_RESIDUAL = 1e-9
"""Largest residual of the optimality conditions: far above rounding (1e-15) and far below any weight that counts."""
_FOLDS = (
    "undefined: all scores or all outcomes of a fold are the same; lower calibration.cv, or judge more dialogues "
    "(calibration.n)"
)


def calibration_gate(
    found: Calibration,
    coverage: float,
    outcomes: tuple[int, int] | None,
    thresholds: CalibrationGate,
    weights: WeightsGate,
    shared: SharedThresholds,
) -> GateResult:
    """Check a calibration on its held-out folds.

    Args:
        found: the calibration.
        coverage: share of the dialogues that are scored.
        outcomes: solved and unsolved dialogues among the scored; None if the target is not success.
        thresholds: `gates.calibration`.
        weights: `gates.weights`, which the candidate must satisfy.
        shared: `gates.shared`.
    """
    few = "too few for a meaningful correlation with success; calibrate on more dialogues"
    checks = [
        at_least("scored, share", coverage, shared.min_coverage, "fix the judge and score them again"),
    ]
    if outcomes is not None:
        checks += [
            at_least("solved dialogues", outcomes[0], shared.min_outcomes, few),
            at_least("unsolved dialogues", outcomes[1], shared.min_outcomes, few),
            room_shown(
                "score by the calibrated weights", found.median_auc["old"], found.intervals["auc"], thresholds, shared
            ),
        ]
    total = sum(found.weights.values())
    constant = {name: score for name, score in found.constant.items() if found.weights[name] > 0}
    gain = gain_wanted(found.median_auc["old"], found.intervals["auc"], thresholds, shared)
    checks += [
        none_stuck(constant),
        # It is not enough to be better than old weights that rank failures first.
        above(
            "rank correlation of the calibrated weights",
            found.median_spearman["calibrated"],
            thresholds.min_corr,
            _FOLDS
            if math.isnan(found.median_spearman["calibrated"])
            else "they rank failures first: check that the judge's scores mean what its instructions say",
        ),
        at_least(
            "rank correlation gained, per cent", found.improve_pct_vs_old, gain,
            _pairs(found, gain) + _advice_on_weights(found.unpulled["improve_pct_vs_old"], gain),
            found.intervals["improve_pct_vs_old"].of(found.rows, "dialogues"),
        ),
        at_least(
            "mean absolute error lowered, per cent", found.mae_drop_pct_vs_old, thresholds.min_mae_drop_pct,
            _advice_on_weights(found.unpulled["mae_drop_pct_vs_old"], thresholds.min_mae_drop_pct),
            found.intervals["mae_drop_pct_vs_old"].of(found.rows, "dialogues"),
        ),
        at_least("smallest weight", min(found.weights.values()), 0.0, "report a bug: the solution breaks its bounds"),
        at_most("largest weight", max(found.weights.values()), weights.max_weight, "no single criterion may dominate"),
        equal("sum is 1", abs(total - 1.0) <= weights.sum_tolerance, True, "report a bug: the weights do not sum to 1"),
        at_most(
            "optimality residual",
            float(np.maximum(found.kkt_residual, found.refits_kkt_residual)),  # unlike max, never hides a NaN
            _MAX_KKT_RESIDUAL,
            "report a bug: the weights are not optimal",
        ),
    ]  # fmt: skip
    wanted = {"improve_pct_vs_old": gain, "mae_drop_pct_vs_old": thresholds.min_mae_drop_pct}
    shown = [
        info(f"{name}, out of bag", interval_in_words(figure, wanted.get(name)))
        for name, figure in found.intervals.items()
        if not name.startswith("weight.")
    ]
    return GateResult("calibration", (*checks, constant_shown(constant), *shown))


def _pairs(found: Calibration, gain: float) -> str:
    """Return the share of solved/unsolved pairs that each score orders correctly, if the target is success."""
    old, new = found.median_auc["old"], found.intervals["auc"].value
    if math.isnan(old) or math.isnan(new):
        return ""
    return f"{pairs_for(gain, old)}; the calibrated weights reach {new:.3f}; "


def _advice_on_weights(most: float, wanted: float) -> str:
    """Return advice on whether to change the weights or the judge, by whether the criteria contain the information."""
    fitted = f"fitted to these same rows without the pull towards the old weights it would be {most:.3g}"
    if most >= wanted:
        return f"{fitted}: the criteria can predict it; lower calibration.l2, or judge more dialogues (calibration.n)"
    return (
        f"{fitted}, so the criteria cannot predict it: weights can only favour criteria that predict success better "
        f"than others, and here all predict it about equally well, or badly. The judge has to improve"
    )
