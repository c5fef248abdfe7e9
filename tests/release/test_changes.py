"""The changes that a review reports: new failures, recoveries and drifts, and none without enough nights."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rc1_lib.records import GateResult
from rc1_lib.release.report.trends import MIN_NIGHTS, Change, changes, courses, nights_left, trend, within
from tests.release.histories import kept, night, values


def reported(lines: Sequence[Mapping[str, Any]], days: int = 7) -> list[Change]:
    nights = kept(lines)
    return changes(within(nights, days), courses(nights, days))


def summary(lines: Sequence[Mapping[str, Any]], days: int = 7) -> list[tuple[str, str]]:
    return [(change.what, change.since) for change in reported(lines, days)]


def test_gate_that_starts_to_fail_is_reported_with_its_first_failing_night() -> None:
    (change,) = reported(values(1.2, 1.2, None, 0.9, 0.8))
    assert (change.what, change.gate, change.since) == ("newly failed", "gate", "2026-11-04")
    assert change.words == "value 0.8, wanted >= 1"


def test_gate_that_failed_before_the_window_is_still_failing() -> None:
    assert summary(values(1.2, 0.9, 0.9, 0.9), days=2) == [("still failing", "2026-11-02")]


def test_gate_that_passed_before_the_window_is_newly_failed() -> None:
    assert summary(values(1.2, 0.9, 0.9), days=2) == [("newly failed", "2026-11-02")]


def test_unjudged_night_is_reported_and_is_not_a_change_of_the_gate() -> None:
    assert summary(values(1.2, None, 1.2)) == []
    refused = night(1, {}, outcome="refused", verdict="a training is at work here")
    assert summary([*values(1.2), refused, night(2, {"gate": 1.2})]) == [("unjudged", "2026-11-02")]


def test_recovery_is_reported_and_a_gate_that_cannot_run_fails() -> None:
    broken = night(1, {"gate": GateResult("gate", error="no file")})
    (change,) = reported([*values(1.2), broken, night(2, {"gate": 1.2})])
    assert (change.what, change.since, change.words) == ("passes again", "2026-11-03", "failed in 1 of 3 nights")


def test_threshold_changed_by_the_configuration_is_reported() -> None:
    lines = values(1.2, 1.2)
    lines[1]["config_sha256"] = "d" * 64
    lines[1]["rounds"]["round1"][0]["checks"][0]["threshold"] = 0.5
    (change,) = reported(lines)
    assert (change.what, change.words) == ("threshold", "value: >= 1 → >= 0.5")
    lines[1]["config_sha256"] = "c" * 64
    assert reported(lines) == [], "the threshold was computed from the night's own data"


def test_steady_fall_is_reported_as_drift_with_the_nights_left() -> None:
    (change,) = reported(values(1.70, 1.59, 1.51, 1.40, 1.29, 1.20))
    assert (change.what, change.since) == ("drift", "2026-11-01")
    assert change.words == "value 1.7 → 1.2, wanted >= 1; at this pace it crosses in 1 to 3 nights"


def test_no_forecast_beyond_the_length_of_the_window() -> None:
    falling = values(*(9.0 - 0.1 * day - 0.01 * (day % 2) for day in range(6)))
    (course,) = courses(kept(falling), 7)
    assert course.trend is not None
    assert nights_left(course) is None
    assert "crosses" not in reported(falling)[0].words


def test_trend_away_from_the_threshold_is_not_a_drift() -> None:
    assert reported(values(1.20, 1.29, 1.40, 1.51, 1.59, 1.70)) == []


def test_noise_and_random_walks_have_no_trend() -> None:
    rng, found = random.Random(7), {"noise": 0, "random walk": 0}
    for _ in range(400):
        steps = [rng.gauss(0, 1) for _ in range(7)]
        found["noise"] += trend(steps) is not None
        found["random walk"] += trend([sum(steps[: place + 1]) for place in range(7)]) is not None
    assert max(found.values()) < 12, "more than a false-alarm rate of 1 % allows"


@pytest.mark.parametrize("count", range(MIN_NIGHTS))
def test_too_few_nights_have_no_trend(count: int) -> None:
    assert trend([2.0 - 0.1 * day for day in range(count)]) is None


def test_trend_ignores_nights_of_another_configuration() -> None:
    lines = values(1.70, 1.59, 1.51, 1.40, 1.29, 1.20)
    for line in lines[:2]:
        line["config_sha256"] = "d" * 64
    assert reported(lines) == []


def test_window_ends_with_the_latest_night_not_today() -> None:
    nights = kept(values(*[1.2] * 10))
    assert [one.verdict for one in within(nights, 3)] == ["of day 7", "of day 8", "of day 9"]
