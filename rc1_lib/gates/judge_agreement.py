"""The judge agrees with people: on enough dialogues of this judge, beyond chance, and without copied labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rc1_lib.checks import at_least, at_most, info
from rc1_lib.config.thresholds import JudgeAgreementGate, SharedThresholds
from rc1_lib.gates.shadow_run import interval_in_words
from rc1_lib.records import Check, GateResult
from rc1_lib.reward.intervals import Interval

GATE = "judge_agreement"
LABELLED = "labelled dialogues of this judge"
LIKENESS = "likeness to the judge's own verdicts"
SECOND = "dialogues labelled by a second person"
KAPPA, RANKS = "kappa", "rank correlation"
"""Names of the figures that decide; reports use them too."""
_LABEL = "label more dialogues: rc1 label"
_ADVICE = (
    "compare the criteria in the report's table: fix the judge's instructions, give more weight to criteria that "
    "people agree with (rc1 weight-calib --labels), or set judge.verdict_at to the cut that the table shows"
)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The judge's agreement with people.

    Attributes:
        labelled: number of dialogues with a label and scores of the configured judge.
        others: number of dialogues with a label and scores of another judge.
        good: number of labelled dialogues that people call good.
        bad: number of labelled dialogues that people call bad.
        coverage: share of the labelled dialogues that are scored.
        likeness: the largest raw agreement or rank correlation of the labels with any overall score of the judge.
        second: number of labelled dialogues that a second person labelled too.
        figures: `kappa`, `rank correlation` and others, with their intervals.
    """

    labelled: int
    others: int
    good: int
    bad: int
    coverage: float
    likeness: float
    second: int
    figures: Mapping[str, Interval]


def judge_agreement_gate(
    found: Agreement, thresholds: JudgeAgreementGate, shared: SharedThresholds, judge_checks: Sequence[Check] = ()
) -> GateResult:
    """Check that the overall score agrees with people's labels.

    Args:
        found: the agreement.
        thresholds: `gates.judge_agreement`.
        shared: `gates.shared`.
        judge_checks: further checks of the scores.
    """
    kappa, ranks = found.figures[KAPPA], found.figures[RANKS]
    few = "too few of one kind to measure agreement; label dialogues of both kinds: rc1 label"
    checks = [
        at_least(LABELLED, found.labelled, thresholds.min_labels, _uncalibrated(found)),
        at_least("good dialogues, by people", found.good, shared.min_outcomes, few),
        at_least("bad dialogues, by people", found.bad, shared.min_outcomes, few),
        at_least("scored, share", found.coverage, shared.min_coverage, "score the dialogues that have no score"),
        at_least(
            "kappa with people", kappa.value, thresholds.min_kappa, _ADVICE, kappa.of(found.labelled, "dialogues")
        ),
        at_least(
            "rank correlation with people", ranks.value, thresholds.min_corr, _ADVICE,
            ranks.of(found.labelled, "dialogues"),
        ),
        at_most(
            LIKENESS, found.likeness, thresholds.max_likeness,
            "people and a judge make different mistakes: these labels were copied from the judge, or given with its "
            "scores in view; have dialogues labelled blind (rc1 label), including hard ones",
        ),
        _second(found, thresholds),
        *judge_checks,
    ]  # fmt: skip
    wanted = {KAPPA: thresholds.min_kappa, RANKS: thresholds.min_corr}
    shown = [info(f"{name}, interval", interval_in_words(one, wanted.get(name))) for name, one in found.figures.items()]
    state = "calibrated against people" if checks[0].passed else "uncalibrated"
    return GateResult(GATE, (*checks, info("the judge is", state), *shown))


def _second(found: Agreement, thresholds: JudgeAgreementGate) -> Check:
    """Require a second person's labels if agreement is nearly perfect, which suggests copied labels."""
    wanted = thresholds.min_labels if found.likeness > thresholds.people_reach else 0
    return at_least(
        SECOND, found.second, wanted,
        f"the labels are closer to the judge than two people are to one another (above {thresholds.people_reach:g}): "
        f"have a second person label the same dialogues blind (rc1 label)",
    )  # fmt: skip


def _uncalibrated(found: Agreement) -> str:
    others = (
        f"; {found.others} more were scored by another model version or with other instructions and do not count: "
        f"keep the dialogues in the file, so that this judge can score them"
        if found.others
        else ""
    )
    return f"the judge is uncalibrated: {_LABEL}{others}"
