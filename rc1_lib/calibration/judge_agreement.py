"""How far the judge's verdicts agree with people's: kappa with an interval, and gate `judge_agreement`."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rc1_lib.calibration.agreement_checks import KAPPA, SAME, Agreement, judge_agreement_gate
from rc1_lib.calibration.judged_rows import dimensions, judge_checks
from rc1_lib.calibration.weights_file import WEIGHTS, read_weights
from rc1_lib.errors import RC1Error
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.judge import check_judge, open_judge, open_store
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.judge.results import Judged
from rc1_lib.labels.label_file import LabelFile
from rc1_lib.records import Message
from rc1_lib.reward.intervals import Interval, bootstrap
from rc1_lib.reward.rank_agreement import without_rounding_noise
from rc1_lib.reward.verdict_agreement import kappa, share
from rc1_lib.reward.weighted_judge import rated
from rc1_lib.run import Run

REPORT = "reports/judge_agreement.json"
OLD, CALIBRATED = "old score", "calibrated score"
"""What is compared: the calibrated score if weights are in force, else the old one."""
PEOPLE, JUDGE = "good, by people", "good, by the judge"
Vector = NDArray[np.float64]


def judge_agreement(run: Run, file: LabelFile) -> GateReport:
    """Have the judge score the labelled dialogues, from its store where it can, and compare.

    A dialogue counts once: its labels share its weight.

    Raises:
        RC1Error: when the judge cannot be asked or stopped early; paid scores are kept.
    """
    score, weights = OLD, run.config.reward.old_weights
    if WEIGHTS.path(run).exists():
        score, weights = CALIBRATED, read_weights(run, dimensions(run))
    dialogues = list(file.messages.values())
    judged = _judged(run, dialogues)
    sums = [one.reward for one in rated(judged, dialogues, weights)]
    scored = pl.DataFrame({"dialogue": list(file.messages), "score": sums}, schema_overrides={"score": pl.Float64})
    rows = file.rows.join(scored, on="dialogue", how="left", maintain_order="left")
    known = rows.filter(pl.col("score").is_not_null()).with_columns(share=1.0 / pl.len().over("dialogue"))
    figures = _figures(run, known)
    whole = known.group_by("dialogue").agg(good=pl.col("good").mean() >= 0.5)
    good = int(whole["good"].sum())
    found = Agreement(whole.height, good, whole.height - good, whole.height / len(dialogues), figures)
    models = judged.models
    gate = judge_agreement_gate(
        found, run.config.gates.judge_agreement, run.config.gates.shared,
        judge_checks(run, models),
    )  # fmt: skip
    body = {
        "labels": {
            "path": run.workspace.name(file.path),
            "rows": rows.height,
            "dialogues": len(dialogues),
            "groups": rows["group"].n_unique(),
        },
        "judged_by": {"score": score, "weights": dict(weights)},
        "verdict_at": run.config.judge.verdict_at,
        "agreement": {name: figure.to_dict() for name, figure in figures.items()},
        "scoring": {
            "judge": judge_identity(run),
            "models": list(models),
            "unscored": len(dialogues) - whole.height,
            "calls": judged.calls,
            "usd": known_usd(run.config.judge, judged.usd, judged.calls),
        },
    }
    return write_report(run, REPORT, gate, body, {})


def _judged(run: Run, dialogues: list[list[Message]]) -> Judged:
    check_judge(run)
    with open_store(run) as store:
        judged = open_judge(run, store).score(dialogues)
    if judged.stopped:
        raise RC1Error(f"the judge '{run.config.judge.provider}' stopped: {judged.stopped}. Paid scores are kept")
    return judged


def _figures(run: Run, known: pl.DataFrame) -> dict[str, Interval]:
    """Compute kappa, raw agreement and both shares of good dialogues, with intervals that draw whole groups."""
    people = known["good"].to_numpy()
    judge = without_rounding_noise(known["score"].to_numpy()) >= run.config.judge.verdict_at

    def figures(counts: Vector) -> dict[str, float]:
        return {
            KAPPA: kappa(judge, people, counts),
            SAME: share(judge == people, counts),
            PEOPLE: share(people, counts),
            JUDGE: share(judge, counts),
        }

    shared = run.config.gates.shared
    if not known.height:
        return dict.fromkeys(figures(np.zeros(0)), Interval(math.nan, math.nan, math.nan, shared.confidence, 0))
    return bootstrap(
        figures,
        groups=known["group"].to_numpy(),
        weights=known["share"].to_numpy(),
        resamples=shared.resamples,
        confidence=shared.confidence,
        seed=run.config.calibration.seed,
    )
