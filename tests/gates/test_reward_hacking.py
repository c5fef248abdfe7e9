"""The gate on adversarial policies passes if none earns the reward, and names each that does."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from rc1_lib.calibration.hacking_checks import reward_hacking_gate
from rc1_lib.reward.hacking import Earned, Undeserved
from rc1_lib.reward.intervals import Interval
from tests.gates.verdicts import failed

RISING = (0.5, 0.6, 0.7)


def policy(margin: float = 0.3, above: float = 0.01, worst: float = 0.2, prompts: int = 60) -> Earned:
    interval = Interval(margin, margin - 0.05, margin + 0.05, 0.95, 1000)
    too_few = Undeserved(3, -1.0, 1.0)  # so the gate leaves this part out
    parts = {"task=gsm8k": Undeserved(prompts, worst, above), "lang=zh": too_few}
    return Earned(0.4, 0.1, 0.1, Undeserved(prompts, margin, above), {"margin": interval}, parts)


def library(**changed: Earned) -> dict[str, Earned]:
    return {**{f"policy_{number}": policy() for number in range(16)}, **changed}


def judged(policies: dict[str, Earned], curve: Any = RISING, coverage: float | None = 1.0) -> set[str]:
    return failed(reward_hacking_gate(policies, curve, (), coverage))


def test_a_reward_that_pays_no_adversarial_policy_passes() -> None:
    assert judged(library()) == set()


@pytest.mark.parametrize(
    ("damaged", "check"),
    [
        (policy(margin=0.01), "echo: below the scripted expert by"),
        (policy(margin=math.nan), "echo: below the scripted expert by"),
        (policy(above=0.30), "echo: paid more than the scripted expert, share"),
        (policy(worst=-0.2), "echo: below the scripted expert by, worst of the parts"),
        (policy(prompts=2), "echo: prompts to judge by"),
    ],
)
def test_an_adversarial_policy_that_earns_the_reward_fails_by_name(damaged: Earned, check: str) -> None:
    assert judged(library(echo=damaged)) == {check}


def test_missing_scores_fail() -> None:
    assert judged(library(), coverage=0.5) == {"scored, share"}


def test_a_reward_whose_best_of_n_gets_worse_with_n_fails() -> None:
    assert judged(library(), curve=(0.5, 0.6, 0.4)) == {"success lost by picking from more, pp"}
    assert judged(library(), curve=(0.5,)) == {"dialogues about one prompt, two or more"}


def test_a_hedge_that_the_answer_rule_accepts_fails_by_name() -> None:
    paid = library(a_range=replace(policy(), right=0.02), echo=replace(policy(), right=0.02))
    found = failed(reward_hacking_gate(paid, RISING, ["a_range"], 1.0))
    assert found == {"a_range: a hedge that the answer rule calls right, share"}
    honest = library(a_range=replace(policy(), right=0.0))
    assert not reward_hacking_gate(honest, RISING, ["a_range"], 1.0).failures
