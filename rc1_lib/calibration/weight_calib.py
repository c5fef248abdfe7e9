"""Fits weights of the criteria to the outcomes of judged rows of the balanced pool; the shadow set is never used."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl

from rc1_lib.calibration.judged_rows import AsksJudge, dimensions, judge_checks, judge_rows, scoring
from rc1_lib.calibration.weight_checks import calibration_gate
from rc1_lib.calibration.weights_file import WEIGHTS
from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.gate_report import PLOTS, GateReport, write_report
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.plots import reward as plots
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.provenance.derived import fingerprint
from rc1_lib.reward.calibration import Calibration, calibrate_weights
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
        config.gates.weights,
        config.gates.shared,
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
    """Fit weights of the criteria to success; rows about one source question stay together."""
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
        corr_floor=config.gates.shared.corr_floor,
        confidence=config.gates.shared.confidence,
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
