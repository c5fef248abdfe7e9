"""Statistics of rollouts: flat rewards, and the smallest effect against simulation."""

from __future__ import annotations

import math
import random
from statistics import NormalDist, fmean, stdev

import pytest

from rc1_lib.forecast.learnability import Trial, learnability_gate
from rc1_lib.forecast.takes import Takes, learnable, smallest_effect_pp
from rc1_lib.forecast.turns import Turns
from rc1_lib.records import BUCKETS
from rc1_lib.sources.embedded import EMBEDDED_TASKS as TASKS

TURNS = Turns((20,) * 40, (), (), (False,) * 20)
WELL_FORMED = Trial([], [], TURNS, [TURNS], True, None, 128)
"""Turns that end and are well formed."""


def made(right: int, of: int = 4, *, task: str = "gsm8k", bucket: str = "easy", flat: bool = False) -> Takes:
    solved = tuple(number < right for number in range(of))
    rewards = (0.5,) * of if flat else tuple(0.7 * won + 0.01 * number for number, won in enumerate(solved))
    return Takes("row", task, bucket, False, solved, rewards)  # type: ignore[arg-type]


def everywhere(right: int = 1, **how: bool) -> list[Takes]:
    """The rollouts of 40 prompts per task and bucket."""
    return [made(right, task=task, bucket=bucket, **how) for task in TASKS for bucket in BUCKETS for _ in range(40)]  # type: ignore[arg-type]


def test_rollouts_are_flat_if_no_two_rewards_differ() -> None:
    assert made(0, flat=True).flat and made(2, flat=True).flat and not made(2).flat
    one_scored = Takes("row", "gsm8k", "easy", False, (True, False), (0.5, None))
    assert one_scored.flat, "a single known reward has nothing to differ from"


def test_smallest_effect_is_detected_at_its_power() -> None:
    """Prompts of very different difficulty, on each of which the second policy is better by exactly that effect."""
    rng = random.Random(1)
    chances = [rng.choice((0.1, 0.3, 0.5, 0.7)) for _ in range(400)]
    takes = [made(sum(rng.random() < chance for _ in range(40)), 40) for chance in chances]
    effect = smallest_effect_pp(takes, len(chances), confidence=0.95, power=0.8) / 100
    detected = 0
    for _ in range(400):
        change = [(rng.random() < chance + effect) - (rng.random() < chance) for chance in chances]
        half = NormalDist().inv_cdf(0.975) * stdev(change) / math.sqrt(len(change))
        detected += fmean(change) - half > 0
    assert 0.74 <= detected / 400 <= 0.86
    assert smallest_effect_pp(takes, 0, confidence=0.95, power=0.8) == math.inf


def test_prompts_that_are_never_solved_do_not_promise_to_show_every_effect() -> None:
    assert smallest_effect_pp([made(0)] * 20, 1, confidence=0.95) > 100


def failed(takes: list[Takes], effect: float = 5.0) -> set[str]:
    return {check.name for check in learnability_gate(takes, WELL_FORMED, {"all": effect}).failures}


def test_shares_have_wilson_intervals_even_at_0_and_1() -> None:
    """The ends solve |share - p| = z sqrt(p (1 - p) / n), so that the interval of 0 of 20 or 20 of 20 has a width."""
    none, some = learnable([made(1)] * 20), learnable([made(4)] * 5 + [made(1)] * 15)
    assert (none.alike.low, none.alike.value) == (0.0, 0.0) and none.alike.high == pytest.approx(0.1611, abs=1e-4)
    assert (none.pass_n.high, none.pass_n.value) == (1.0, 1.0) and none.pass_n.low == pytest.approx(0.8389, abs=1e-4)
    z = NormalDist().inv_cdf(0.975)
    for end in (some.alike.low, some.alike.high):
        assert abs(0.25 - end) == pytest.approx(z * math.sqrt(end * (1 - end) / 20))
    one = learnable([made(1)]).alike
    assert one.low == 0.0 and one.high > 0.7


def test_learnable_rollouts_pass_and_each_damage_fails_its_own_check() -> None:
    assert failed(everywhere()) == set()
    flat = "share without a difference between rollouts"
    assert failed(everywhere(flat=True)) == {f"{name}: {flat}" for name in ("all", *TASKS, *BUCKETS)}
    hard = [made(1, task=one.task, bucket=one.bucket, flat=one.bucket == "hard") for one in everywhere()]
    assert failed(hard) == {f"hard: {flat}"}
    alike = "share that all rollouts solve, or none"
    every = "share that every take solves"
    assert failed(everywhere(4)) == {f"{name}: {one}" for name in ("all", *TASKS, *BUCKETS) for one in (alike, every)}
    never = [made(0 if one.task == "gsm8k" else 1, task=one.task, bucket=one.bucket) for one in everywhere()]
    assert failed(never) == {"gsm8k: solved by one take of all", f"gsm8k: {alike}"}
    few = [one for one in everywhere() if one.task != "gsm8k"] + [made(1)] * 5
    assert failed(few) == {"gsm8k: prompts tried"}
    assert (
        failed(everywhere(), effect=11.0)
        == failed(everywhere(), effect=math.inf)
        == {"smallest effect that can be shown, all, pp"}
    )
