"""What a review says has changed: what turned red, what drifts, and that it says nothing of what it cannot know."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rc1_lib.records import GateResult
from rc1_lib.release.report.trends import MIN_NIGHTS, Change, changes, courses, nights_left, trend, within
from tests.release.histories import kept, night, values


def told(lines: Sequence[Mapping[str, Any]], days: int = 7) -> list[Change]:
    nights = kept(lines)
    return changes(within(nights, days), courses(nights, days))


def summary(lines: Sequence[Mapping[str, Any]], days: int = 7) -> list[tuple[str, str]]:
    return [(change.what, change.since) for change in told(lines, days)]


def test_a_gate_that_turned_red_is_new_red_from_its_first_red_night() -> None:
    (change,) = told(values(1.2, 1.2, None, 0.9, 0.8))
    assert (change.what, change.gate, change.since) == ("newly failed", "gate", "2026-11-04")
    assert change.words == "value 0.8, wanted >= 1"


def test_one_that_was_red_before_these_nights_is_still_red() -> None:
    assert summary(values(1.2, 0.9, 0.9, 0.9), days=2) == [("still failing", "2026-11-02")]


def test_one_that_was_green_before_these_nights_is_new_red_in_all_of_them() -> None:
    assert summary(values(1.2, 0.9, 0.9), days=2) == [("newly failed", "2026-11-02")]


def test_a_night_in_between_that_was_not_judged_changes_nothing() -> None:
    assert summary(values(1.2, None, 1.2)) == []
    refused = night(1, {}, outcome="refused", verdict="a training is at work here")
    assert summary([*values(1.2), refused, night(2, {"gate": 1.2})]) == [("unjudged", "2026-11-02")]


def test_green_again_is_told_and_a_gate_that_could_not_be_evaluated_is_red() -> None:
    broken = night(1, {"gate": GateResult("gate", error="no file")})
    (change,) = told([*values(1.2), broken, night(2, {"gate": 1.2})])
    assert (change.what, change.since, change.words) == ("passes again", "2026-11-03", "failed in 1 of 3 nights")


def test_a_threshold_that_moved_with_the_configuration_is_told() -> None:
    lines = values(1.2, 1.2)
    lines[1]["config_sha256"] = "d" * 64
    lines[1]["rounds"]["round1"][0]["checks"][0]["threshold"] = 0.5
    (change,) = told(lines)
    assert (change.what, change.words) == ("threshold", "value: >= 1 → >= 0.5")
    lines[1]["config_sha256"] = "c" * 64
    assert told(lines) == [], "worked out from the night's own data"


def test_a_steady_fall_is_a_drift_with_the_nights_that_are_left() -> None:
    (change,) = told(values(1.70, 1.59, 1.51, 1.40, 1.29, 1.20))
    assert (change.what, change.since) == ("drift", "2026-11-01")
    assert change.words == "value 1.7 → 1.2, wanted >= 1; at this pace it crosses in 1 to 3 nights"


def test_a_threshold_further_ahead_than_was_looked_back_is_no_forecast() -> None:
    falling = values(*(9.0 - 0.1 * day - 0.01 * (day % 2) for day in range(6)))
    (course,) = courses(kept(falling), 7)
    assert course.trend is not None
    assert nights_left(course) is None
    assert "crossed" not in told(falling)[0].words


def test_away_from_the_threshold_is_no_drift() -> None:
    assert told(values(1.20, 1.29, 1.40, 1.51, 1.59, 1.70)) == []


def test_a_value_that_only_scatters_or_wanders_has_no_trend() -> None:
    rng, found = random.Random(7), {"scatters": 0, "wanders": 0}
    for _ in range(400):
        steps = [rng.gauss(0, 1) for _ in range(7)]
        found["scatters"] += trend(steps) is not None
        found["wanders"] += trend([sum(steps[: place + 1]) for place in range(7)]) is not None
    assert max(found.values()) < 12, "beyond what 1 % allows"


@pytest.mark.parametrize("count", range(MIN_NIGHTS))
def test_few_nights_have_no_trend_however_straight_they_lie(count: int) -> None:
    assert trend([2.0 - 0.1 * day for day in range(count)]) is None


def test_nights_of_another_configuration_are_no_part_of_a_trend() -> None:
    lines = values(1.70, 1.59, 1.51, 1.40, 1.29, 1.20)
    for line in lines[:2]:
        line["config_sha256"] = "d" * 64
    assert told(lines) == []


def test_the_days_end_with_the_latest_night_not_with_today() -> None:
    nights = kept(values(*[1.2] * 10))
    assert [one.verdict for one in within(nights, 3)] == ["of day 7", "of day 8", "of day 9"]
