"""Drift of a judge relative to its own noise: which shifts are found, and how rare false alarms are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rc1_lib.judge.drift import Shift, shifts
from tests.shares import share

DIMENSIONS = ("answered", "grounded", "reasoned")
Floats = NDArray[np.float64]


def samples(
    seed: int, *, dialogues: int = 60, then: int = 3, now: int = 3, sd: float = 0.1, digits: int = 12
) -> tuple[Floats, Floats]:
    """Return two sets of scores by one judge; half of a sample's noise is common to its criteria."""
    rng = np.random.default_rng(seed)
    level = rng.uniform(0.3, 0.7, (dialogues, 1, len(DIMENSIONS)))

    def drawn(count: int) -> Floats:
        common = rng.normal(0, sd, (dialogues, count, 1))
        own = rng.normal(0, sd, (dialogues, count, len(DIMENSIONS)))
        return np.asarray(np.clip(np.round(level + (common + own) / 2**0.5, digits), 0, 1))

    return drawn(then), drawn(now)


def found(before: Floats, now: Floats, *, false_alarms: float = 0.001, deals: int = 5000) -> list[Shift]:
    return shifts(before, now, DIMENSIONS, false_alarms=false_alarms, deals=deals, seed=1)


def beyond(found: list[Shift]) -> set[str]:
    """Return the criteria that moved or came apart beyond the noise."""
    return {one.dimension for one in found if abs(one.moved) > one.moved_bound or one.apart > one.apart_bound}


def test_a_judge_milder_by_a_tenth_is_found_in_every_criterion_and_overall() -> None:
    before, now = samples(1)
    moved = found(before, np.clip(now + 0.1, 0, 1))
    assert beyond(moved) == {*DIMENSIONS, "overall"}
    assert all(0.05 < one.moved < 0.15 for one in moved)


def test_a_shift_in_one_criterion_is_found_in_that_criterion() -> None:
    before, now = samples(2)
    now[:, :, 1] -= 0.15
    assert {"grounded"} <= beyond(found(before, now)) <= {"grounded", "overall"}


def test_opposite_shifts_are_found_although_the_mean_stays() -> None:
    before, now = samples(3, sd=0.05)
    now[::2] += 0.1
    now[1::2] -= 0.1
    moved = found(before, now)
    assert all(abs(one.moved) <= one.moved_bound for one in moved)
    assert beyond(moved) == {*DIMENSIONS, "overall"}


def test_a_judge_without_noise_has_drift_only_in_the_criterion_that_changed() -> None:
    before, _ = samples(4, then=1)
    before = np.repeat(before, 3, axis=1)
    assert beyond(found(before, before.copy())) == set()
    now = before.copy()
    now[:, :, 0] += 0.02
    assert "answered" in beyond(found(before, now))


@pytest.mark.parametrize(
    ("then", "now", "digits"), share([(3, 3, 12), (3, 3, 1), (5, 3, 12), (1, 1, 12), (9, 9, 2)], 3, 5, 1)
)
def test_an_unchanged_judge_with_noise_shows_no_drift(then: int, now: int, digits: int) -> None:
    """With any number of samples, and also if the judge grades in tenths."""
    assert [seed for seed in range(10) if beyond(found(*samples(seed, then=then, now=now, digits=digits)))] == []


@pytest.mark.parametrize(
    ("seeds", "rate", "most"), [(60, 0.05, 9), pytest.param(1000, 0.05, 72, marks=pytest.mark.long)]
)
def test_false_alarms_occur_at_the_configured_rate(seeds: int, rate: float, most: int) -> None:
    """The rate is that of the whole verdict. One in a thousand binomial counts with it is above the bound."""
    alarms = sum(bool(beyond(found(*samples(seed), false_alarms=rate, deals=2000))) for seed in range(seeds))
    assert alarms <= most
    if seeds > 100:
        assert alarms >= 30, "fewer alarms than the rate allows: the test would miss real drift"


@pytest.mark.long
def test_false_alarms_are_rare_at_the_shipped_rate() -> None:
    alarms = [seed for seed in range(800) if beyond(found(*samples(seed), deals=5000))]
    assert len(alarms) <= 5, "0.8 are expected, more than 5 in one of 5,000 such runs"


def test_the_order_of_samples_and_dialogues_does_not_matter() -> None:
    before, now = samples(6)
    shuffled = np.random.default_rng(1).permutation(len(before))
    one, other = found(before, now), found(before[shuffled][:, ::-1], now[shuffled][:, ::-1])
    assert [shift.moved for shift in one] == pytest.approx([shift.moved for shift in other])
    assert [shift.moved_bound for shift in one] == pytest.approx([shift.moved_bound for shift in other], rel=0.15)


def test_without_dialogues_there_are_no_shifts() -> None:
    assert found(np.zeros((0, 3, 3)), np.zeros((0, 3, 3))) == []
