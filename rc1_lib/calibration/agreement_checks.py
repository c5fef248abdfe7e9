"""The judge agrees with people: on enough dialogues, beyond chance, and without copied labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rc1_lib.checks import at_least, at_most, info
from rc1_lib.config.thresholds import JudgeAgreementGate, SharedThresholds
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.intervals import Interval, interval_in_words

GATE = "judge_agreement"
LABELLED = "labelled dialogues"
LIKENESS = "likeness to the judge's own verdicts"
KAPPA, SAME = "kappa", "agreement"
"""Names of the figures that decide; reports use them too."""


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


def judge_agreement_gate(
    found: Agreement, thresholds: JudgeAgreementGate, shared: SharedThresholds, judge_checks: Sequence[Check] = ()
) -> GateResult:
    """Check that the judge's verdicts agree with people's.

    Args:
        found: the agreement.
        thresholds: `gates.judge_agreement`.
        shared: `gates.shared`.
        judge_checks: further checks of the scores.
    """
    kappa = found.figures[KAPPA]
    few = "too few of one kind to measure agreement; label dialogues of both kinds: rc1 label"
    checks = [
        at_least(
            LABELLED, found.labelled, thresholds.min_labels,
            "the judge is uncalibrated: label more dialogues: rc1 label",
        ),
        at_least("good dialogues, by people", found.good, shared.min_outcomes, few),
        at_least("bad dialogues, by people", found.bad, shared.min_outcomes, few),
        at_least("scored, share", found.coverage, shared.min_coverage, "score the dialogues that have no score"),
        at_least(
            "kappa with people", kappa.value, thresholds.min_kappa,
            "the judge's verdicts hardly agree with people's: fix its instructions, or set judge.verdict_at to a cut "
            "with as many good dialogues as people find",
            kappa.of(found.labelled, "dialogues"),
        ),
        at_most(
            LIKENESS, found.figures[SAME].value, thresholds.max_likeness,
            "people and a judge make different mistakes: these labels were copied from the judge, or given with its "
            "scores in view; have the sheet of rc1 label filled in",
        ),
        *judge_checks,
    ]  # fmt: skip
    wanted = {KAPPA: thresholds.min_kappa}
    shown = [info(f"{name}, interval", interval_in_words(one, wanted.get(name))) for name, one in found.figures.items()]
    state = "calibrated against people" if checks[0].passed else "uncalibrated"
    return GateResult(GATE, (*checks, info("the judge is", state), *shown))
