"""The gate on the judge's agreement with people: enough sound labels pass, each damage fails the matching check."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rc1_lib.calibration.judge_agreement import KAPPA, LABELLED, LIKENESS, SAME, Agreement, judge_agreement_gate
from rc1_lib.checks import at_most
from rc1_lib.records import GateResult, Status
from rc1_lib.reward.intervals import Interval
from rc1_lib.run import published_config
from tests.gates.verdicts import failed

LABELS = published_config().gates.judge_agreement.min_labels


def figures(kappa: float = 0.6, same: float = 0.85) -> dict[str, Interval]:
    values = {KAPPA: kappa, SAME: same}
    return {name: Interval(value, value - 0.1, value + 0.1, 0.95, 1000) for name, value in values.items()}


SOUND = Agreement(labelled=60, good=35, bad=25, coverage=1.0, figures=figures())


def judge_status(result: GateResult) -> object:
    return {check.name: check.value for check in result.checks}["the judge is"]


def test_enough_labels_that_agree_beyond_chance_pass() -> None:
    result = judge_agreement_gate(SOUND, LABELS)
    assert (result.status, judge_status(result)) == (Status.PASSED, "calibrated against people")
    shown = {check.name: check.value for check in result.checks if check.op == "info"}
    assert shown["kappa, interval"] == "0.6 (95 %: 0.5 to 0.7)"


def test_fewer_than_fifty_labels_leave_the_judge_uncalibrated() -> None:
    assert judge_agreement_gate(replace(SOUND, labelled=50), LABELS).status is Status.PASSED
    result = judge_agreement_gate(replace(SOUND, labelled=49), LABELS)
    assert (failed(result), judge_status(result)) == ({LABELLED}, "uncalibrated")
    assert "the judge is uncalibrated: label more dialogues: rc1 label" in result.failures[0].advice


@pytest.mark.parametrize(
    ("damaged", "check"),
    [
        (replace(SOUND, good=60, bad=0), "bad dialogues, by people"),
        (replace(SOUND, good=3, bad=57), "good dialogues, by people"),
        (replace(SOUND, coverage=0.9), "scored, share"),
        (replace(SOUND, coverage=math.nan), "scored, share"),
        (replace(SOUND, figures=figures(kappa=0.05)), "kappa with people"),
        (replace(SOUND, figures=figures(kappa=math.nan)), "kappa with people"),
        (replace(SOUND, figures=figures(same=1.0)), LIKENESS),
        (replace(SOUND, figures=figures(same=math.nan)), LIKENESS),
    ],
)
def test_each_damage_to_the_agreement_fails_the_matching_check(damaged: Agreement, check: str) -> None:
    assert failed(judge_agreement_gate(damaged, LABELS)) == {check}


def test_further_checks_of_the_scores_count_too() -> None:
    versions = at_most("model versions", 2, 1, "ask one")
    assert failed(judge_agreement_gate(SOUND, LABELS, (versions,))) == {"model versions"}
