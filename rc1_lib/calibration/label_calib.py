"""Fits weights of the criteria to people's labels; the weights in force do not change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl

from rc1_lib.calibration.judge_agreement import judge_checks
from rc1_lib.calibration.labelled_rows import OLD, LabelledRows, scored_labels
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.gates.calibration import calibration_gate
from rc1_lib.labels.label_file import LabelFile
from rc1_lib.reward.calibration import Calibration, calibrate_weights
from rc1_lib.reward.verdict_agreement import GOOD_AT
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress

STAGE = "weights"


def label_calib(run: Run, file: LabelFile) -> GateReport:
    """Fit weights to labelled dialogues, with folds and resamples by group, and check them like any calibration.

    The target is the person's label. Each dialogue counts once, or less if its scores are unstable. The prior is the
    old weights if the criteria are the judge's, else equal weights.

    Raises:
        RC1Error: when the judge cannot be asked, or there are too few dialogues or groups.
    """
    rows = scored_labels(run, file)
    labelled = rows.labelled()
    found = _calibrate(run, rows, labelled)
    whole = labelled.filter("scored").group_by("dialogue").agg(good=pl.col("label").mean() >= GOOD_AT)
    good = int(whole["good"].sum())
    dialogues = labelled["dialogue"].n_unique()
    gate = calibration_gate(
        found, whole.height / dialogues, (good, whole.height - good), run.config.gates.calibration,
        run.config.gates.weights, run.config.gates.shared,
    )  # fmt: skip
    gate = replace(gate, checks=(*gate.checks, *judge_checks(run, rows)))
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")[:-3]
    body = {
        "weights": dict(found.weights),
        "old_weights": _prior(rows),
        "judge": dict(rows.judge),
        "labels": {
            "path": run.workspace.name(file.path),
            "rows": labelled.height,
            "dialogues": dialogues,
            "groups": labelled["group"].n_unique(),
        },
        "settings": run.config.calibration.model_dump(mode="json", exclude={"n"}),
        "max_weight": run.config.gates.weights.max_weight,
        "scoring": rows.summary(),
        "names": list(found.names),
        "calibration": found.to_dict(),
    }
    return write_report(run, f"reports/label_calibration_{stamp}.json", gate, body, {})


def _prior(rows: LabelledRows) -> dict[str, float]:
    if OLD in rows.overall:
        return dict(rows.overall[OLD])
    return dict.fromkeys(rows.names, 1 / len(rows.names))


def _calibrate(run: Run, rows: LabelledRows, labelled: pl.DataFrame) -> Calibration:
    config = run.config
    unstable = pl.when(pl.col("unstable").fill_null(False)).then(config.reward.unstable_weight).otherwise(1.0)
    return calibrate_weights(
        labelled.select(rows.names).cast(pl.Float64).fill_null(float("nan")).to_numpy(),
        labelled["label"].to_numpy(),
        labelled["group"].to_numpy().astype(np.str_),
        names=rows.names,
        prior=_prior(rows),
        l2=config.calibration.l2,
        max_weight=config.gates.weights.max_weight,
        cv=config.calibration.cv,
        boot=config.calibration.boot,
        seed=config.calibration.seed,
        row_weights=labelled.select(pl.col("share") * unstable).to_series().to_numpy(),
        corr_floor=config.gates.shared.corr_floor,
        confidence=config.gates.shared.confidence,
        progress=lambda done, total: report_progress(STAGE, done, total),
    )
