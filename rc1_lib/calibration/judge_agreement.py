"""How far the judge's verdicts agree with people's: kappa with an interval, and gate `judge_agreement`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from rc1_lib.calibration.derived import WEIGHTS
from rc1_lib.calibration.judged_rows import dimensions, judge_checks
from rc1_lib.calibration.shadow_checks import MIN_OUTCOMES
from rc1_lib.calibration.weights_file import read_weights
from rc1_lib.checks import at_least, at_most, info
from rc1_lib.errors import RC1Error
from rc1_lib.gate_report import GateReport, write_report
from rc1_lib.judge.budget import known_usd
from rc1_lib.judge.judge import check_judge, open_judge, open_store
from rc1_lib.judge.prompt import judge_identity
from rc1_lib.judge.results import MIN_COVERAGE, Judged
from rc1_lib.labels.label_file import LabelFile
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import Check, GateResult, Message
from rc1_lib.reward.intervals import Interval, bootstrap, interval_in_words
from rc1_lib.reward.rank_agreement import without_rounding_noise
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
        found, run.config.gates.judge_agreement.min_labels, judge_checks(run, models),
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

    if not known.height:
        return dict.fromkeys(figures(np.zeros(0)), Interval(math.nan, math.nan, math.nan, CONFIDENCE, 0))
    return bootstrap(
        figures,
        groups=known["group"].to_numpy(),
        weights=known["share"].to_numpy(),
        resamples=run.config.gates.shared.resamples,
        confidence=CONFIDENCE,
        seed=run.config.calibration.seed,
    )


GATE = "judge_agreement"
LABELLED = "labelled dialogues"
LIKENESS = "likeness to the judge's own verdicts"
KAPPA, SAME = "kappa", "agreement"
"""Names of the figures that decide; reports use them too."""
_MIN_KAPPA = 0.4
"""Smallest kappa of the judge's verdicts with people's: moderate agreement begins there (Landis and Koch 1977)."""
_MAX_LIKENESS = 0.99
"""Largest share of dialogues with the judge's own verdict: annotators who never differ from it have copied it."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The judge's agreement with people.

    Attributes:
        labelled: number of dialogues with a label and a score.
        good: number of these that people call good.
        bad: number of these that people call bad.
        coverage: share of the labelled dialogues that are scored.
        figures: `kappa`, `agreement` and others, with their intervals.
    """

    labelled: int
    good: int
    bad: int
    coverage: float
    figures: Mapping[str, Interval]


def judge_agreement_gate(found: Agreement, min_labels: int, judge_checks: Sequence[Check] = ()) -> GateResult:
    """Check that the judge's verdicts agree with people's.

    Args:
        min_labels: `gates.judge_agreement.min_labels`.
        judge_checks: further checks of the scores.
    """
    kappa = found.figures[KAPPA]
    few = "too few of one kind to measure agreement; label dialogues of both kinds: rc1 label"
    checks = [
        at_least(
            LABELLED, found.labelled, min_labels,
            "the judge is uncalibrated: label more dialogues: rc1 label",
        ),
        at_least("good dialogues, by people", found.good, MIN_OUTCOMES, few),
        at_least("bad dialogues, by people", found.bad, MIN_OUTCOMES, few),
        at_least("scored, share", found.coverage, MIN_COVERAGE, "score the dialogues that have no score"),
        at_least(
            "kappa with people", kappa.value, _MIN_KAPPA,
            "the judge's verdicts hardly agree with people's: fix its instructions, or set judge.verdict_at to a cut "
            "with as many good dialogues as people find",
            kappa.of(found.labelled, "dialogues"),
        ),
        at_most(
            LIKENESS, found.figures[SAME].value, _MAX_LIKENESS,
            "people and a judge make different mistakes: these labels were copied from the judge, or given with its "
            "scores in view; have the sheet of rc1 label filled in",
        ),
        *judge_checks,
    ]  # fmt: skip
    shown = [info(f"{name}, interval", interval_in_words(one)) for name, one in found.figures.items()]
    state = "calibrated against people" if checks[0].passed else "uncalibrated"
    return GateResult(GATE, (*checks, info("the judge is", state), *shown))


def kappa(first: ArrayLike, second: ArrayLike, weights: ArrayLike) -> float:
    """Compute Cohen's kappa of two columns of verdicts: (observed - expected) / (1 - expected) agreement.

    Source: Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960).

    Args:
        first: shape (n,), booleans.
        second: shape (n,), booleans.
        weights: shape (n,), frequency weights.

    Returns:
        At most 1; 0 if one column is constant; NaN if both are constant and equal, or without rows.
    """
    a, b = np.asarray(first, np.bool_), np.asarray(second, np.bool_)
    p, q = share(a, weights), share(b, weights)
    by_chance = p * q + (1 - p) * (1 - q)
    return (share(a == b, weights) - by_chance) / (1 - by_chance) if 1 - by_chance > 1e-12 else math.nan


def share(chosen: ArrayLike, weights: ArrayLike) -> float:
    """Compute the weighted share of a boolean column that is true; NaN without rows."""
    values, w = np.asarray(chosen, np.float64), np.asarray(weights, np.float64)
    total = w.sum()
    return float((w * values).sum() / total) if total else math.nan
