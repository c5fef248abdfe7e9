"""Fits weights of the dimensions to the outcomes of judged rows of the balanced pool; the shadow set is never used."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.judged_rows import AsksJudge, dimensions, judge_checks, judge_rows, scoring
from rc1_lib.calibration.shadow_checks import (
    MIN_OUTCOMES,
    constant_shown,
    gain_wanted,
    none_stuck,
    pairs_for,
    room_shown,
)
from rc1_lib.checks import above, at_least, at_most, equal, info
from rc1_lib.config.thresholds import CalibrationGate
from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.gate_report import PLOTS, GateReport, write_report
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.judge.results import MIN_COVERAGE
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.plots import reward as plots
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.provenance.derived import fingerprint
from rc1_lib.records import GateResult
from rc1_lib.reward.calibration import Calibration, calibrate_weights
from rc1_lib.reward.intervals import interval_in_words
from rc1_lib.reward.terms import SUM_TOLERANCE
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress

STAGE = "weights"


def weight_calib(run: Run, *, judge: AsksJudge = judge_rows) -> GateReport:
    """Find the weights of the new reward and check them, without adopting them.

    Every report has a unique name, so that it never replaces the one that supports the weights in force.

    Args:
        run: supplies balanced pool and thresholds.
        judge: scores rows, like `judge_rows`.

    Raises:
        RC1Error: when the judge cannot be asked, or there are too few rows.
    """
    config = run.config
    rows = calibration_rows(run)
    judged = judge(run, rows)
    found = _fit(run, judged.rows)
    scored = judged.rows.filter(pl.col("weight") > 0)  # rows of weight 0 do not count as outcomes either
    solved = int(scored["solved"].sum())
    gate = calibration_gate(
        found,
        judged.coverage,
        (solved, scored.height - solved),
        config.gates.calibration,
    )
    gate = replace(gate, checks=(*gate.checks, *judge_checks(run, judged.models)))
    passed = not gate.failures
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")[:-3]
    name = f"{stamp}{'' if passed else '_refused'}"
    body = {
        "weights": dict(found.weights),
        "old_weights": dict(config.reward.old_weights),
        "judge": judge_identity(run),
        "rows": {
            **fingerprint(BALANCED, run),
            "asked_for": config.calibration.n,
            "taken": rows.height,
        },
        "inputs": WEIGHTS.inputs(run),
        "settings": config.calibration.model_dump(mode="json"),
        "max_weight": config.gates.weights.max_weight,
        "scoring": scoring(run, judged),
        "names": list(found.names),
        "calibration": found.to_dict(),
    }
    return write_report(run, f"reports/calibration_report_{name}.json", gate, body, _draw(run, name, found))


def calibration_rows(run: Run) -> pl.DataFrame:
    """Draw `calibration.n` rows of the balanced pool with `calibration.seed`; return all rows if it has fewer."""
    rows = rows_of(run, BALANCED).sort("id")
    chosen = run.config.calibration
    return rows.sample(min(chosen.n, rows.height), seed=chosen.seed, shuffle=True)


def _fit(run: Run, frame: pl.DataFrame) -> Calibration:
    """Fit weights of the dimensions to success; rows about one source question stay together."""
    config, names = run.config, dimensions(run)
    return calibrate_weights(
        frame.select(names).cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        frame["solved"].cast(pl.Float64).to_numpy(),
        frame["source_id"].to_numpy().astype(np.str_),
        names=names,
        prior=config.reward.old_weights,
        l2=config.calibration.l2,
        max_weight=config.gates.weights.max_weight,
        cv=config.calibration.cv,
        boot=config.calibration.boot,
        seed=config.calibration.seed,
        row_weights=frame["weight"].to_numpy(),
        confidence=CONFIDENCE,
        progress=lambda done, total: report_progress(STAGE, done, total),
    )


def _draw(run: Run, name: str, found: Calibration) -> dict[str, str]:
    file = f"{PLOTS}/calibration_{name}_weights.png"
    old, equal = run.config.reward.old_weights, 1.0 / len(found.names)
    shown = f"n = {found.rows:,} dialogues about {found.groups:,} source questions"
    drawn = {
        dimension: (
            old.get(dimension, 0.0),
            equal,
            found.weights[dimension],
            found.intervals[f"weight.{dimension}"].low,
            found.intervals[f"weight.{dimension}"].high,
        )
        for dimension in found.names
    }
    plots.weights(run.workspace.path(file), drawn, cap=run.config.gates.weights.max_weight, caption=shown)
    return {"weights": file}


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
) -> GateResult:
    """Check a calibration on its held-out folds.

    Args:
        coverage: share of the dialogues that are scored.
        outcomes: solved and unsolved dialogues among the scored; None if the target is not success.
        thresholds: `gates.calibration`.
    """
    few = "too few for a meaningful correlation with success; calibrate on more dialogues"
    checks = [
        at_least("scored, share", coverage, MIN_COVERAGE, "fix the judge and score them again"),
    ]
    if outcomes is not None:
        checks += [
            at_least("solved dialogues", outcomes[0], MIN_OUTCOMES, few),
            at_least("unsolved dialogues", outcomes[1], MIN_OUTCOMES, few),
            room_shown("score by the calibrated weights", found.median_auc["old"], found.intervals["auc"], thresholds),
        ]
    total = sum(found.weights.values())
    constant = {name: score for name, score in found.constant.items() if found.weights[name] > 0}
    gain = gain_wanted(found.median_auc["old"], found.intervals["auc"], thresholds)
    checks += [
        none_stuck(constant),
        # It is not enough to be better than old weights that rank failures first.
        above(
            "rank correlation of the calibrated weights",
            found.median_spearman["calibrated"],
            0.0,
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
        equal("sum is 1", abs(total - 1.0) <= SUM_TOLERANCE, True, "report a bug: the weights do not sum to 1"),
        at_most(
            "optimality residual",
            float(np.maximum(found.kkt_residual, found.refits_kkt_residual)),  # unlike max, never hides a NaN
            _MAX_KKT_RESIDUAL,
            "report a bug: the weights are not optimal",
        ),
    ]  # fmt: skip
    shown = [
        info(f"{name}, out of bag", interval_in_words(figure))
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
    """Return advice on whether to change the weights or the judge: do the dimensions contain the information?"""
    fitted = f"fitted to these same rows without the pull towards the old weights it would be {most:.3g}"
    if most >= wanted:
        return f"{fitted}: the dimensions can predict it; lower calibration.l2, or judge more dialogues (calibration.n)"
    return (
        f"{fitted}, so the dimensions cannot predict it: weights only favour dimensions that predict success better "
        f"than others, and here all predict it about equally well, or badly. The judge has to improve"
    )
