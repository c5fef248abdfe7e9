"""Every gate over the nights: its readings, its drift, and what changed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from statistics import fmean, stdev

from rc1_lib.numbers.uncertainty import margin
from rc1_lib.preflight.nights import KeptGate, KeptNight, NightOutcome
from rc1_lib.records import Check, Status
from rc1_lib.release.report.sources import is_number, said

_FAILURES = (Status.FAILED, Status.ERROR)
MIN_NIGHTS = 5
"""Minimum nights for a trend: the interval of only two changes is more than sixty times as wide as their distance."""
CONFIDENCE = 0.99
"""High, because some twenty gates are tested each time."""
NEW, STILL, AGAIN = "newly failed", "still failing", "passes again"
_ORDER = (NEW, STILL, "drift", "threshold", AGAIN, "unjudged")
NOTHING = "No gate changed its verdict, no threshold moved, and nothing drifts towards one."


@dataclass(frozen=True, slots=True)
class Reading:
    """A gate's result in one night.

    Attributes:
        night: the night.
        gate: its verdict in the first round that failed it, else in the last that judged it; None if none did.
        check: the deciding check on that night; None if it was not judged.
    """

    night: KeptNight
    gate: KeptGate | None
    check: Check | None

    @property
    def failed(self) -> bool:
        """Whether it was judged and did not pass."""
        return self.gate is not None and self.gate.status in _FAILURES

    @property
    def judged(self) -> bool:
        """Whether it has a verdict, so that it was judged and does not wait for another gate."""
        return self.gate is not None and self.gate.status != Status.WAITING

    @property
    def value(self) -> float | None:
        """The deciding value; None if it was not a number."""
        return self.check.value if self.check is not None and is_number(self.check.value) else None

    @property
    def checks(self) -> Mapping[str, Check]:
        """Name -> check, of all its checks."""
        return {check.name: check for check in self.gate.checks} if self.gate is not None else {}

    @property
    def bounds(self) -> tuple[float, ...]:
        """The numeric thresholds of the deciding check."""
        given = self.check.threshold if self.check is not None else None
        return tuple(one for one in (given if isinstance(given, list) else [given]) if is_number(one))


@dataclass(frozen=True, slots=True)
class Trend:
    """The mean change from one night to the next, with its interval, which excludes 0."""

    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Course:
    """A gate over the nights.

    Attributes:
        gate: its name.
        decisive: the check to follow: the one that failed last, else the one closest to its threshold last night.
        readings: one per night, oldest first.
        before: the last reading before these nights; None if there is none.
    """

    gate: str
    decisive: str
    readings: tuple[Reading, ...]
    before: Reading | None

    @property
    def trend(self) -> Trend | None:
        """Its trend under the latest configuration; None if it is not significant."""
        return trend([one.value for one in self.alike if one.value is not None])

    @property
    def alike(self) -> Sequence[Reading]:
        """The latest readings with a value under the same configuration."""
        known = [one for one in self.readings if one.value is not None]
        start = len(known)
        while start and known[start - 1].night.config_sha256 == known[-1].night.config_sha256:
            start -= 1
        return known[start:]


def within(nights: Sequence[KeptNight], days: int) -> Sequence[KeptNight]:
    """Return the nights of the last `days` days up to the latest night, whatever the time is now."""
    return [night for night in nights if night.began > nights[-1].began - timedelta(days=days)]


def courses(nights: Sequence[KeptNight], days: int) -> list[Course]:
    """Return every gate that was judged in the last `days` days, in the order of judging."""
    shown = within(nights, days)
    earlier = nights[: len(nights) - len(shown)]
    names = dict.fromkeys(gate.name for night in reversed(shown) for gate in night.gates)
    return [_course(name, shown, earlier) for name in names]


def _course(name: str, shown: Sequence[KeptNight], earlier: Sequence[KeptNight]) -> Course:
    verdicts = [_verdict(night, name) for night in shown]
    decisive = _decisive([gate for gate in verdicts if gate is not None])
    readings = tuple(Reading(night, gate, _check(gate, decisive)) for night, gate in zip(shown, verdicts, strict=True))
    past = ((night, _verdict(night, name)) for night in reversed(earlier))
    known = (Reading(night, gate, _check(gate, decisive)) for night, gate in past)
    return Course(name, decisive, readings, next((one for one in known if one.judged), None))


def _verdict(night: KeptNight, name: str) -> KeptGate | None:
    known = [gate for gate in night.gates if gate.name == name]
    failed = [gate for gate in known if gate.status in _FAILURES]
    judged = [gate for gate in known if gate.status != Status.WAITING]
    return next(iter(failed or judged[-1:] or known), None)


def _decisive(verdicts: Sequence[KeptGate]) -> str:
    failed = (check.name for gate in reversed(verdicts) for check in gate.checks if not check.passed)
    if (name := next(failed, None)) is not None:
        return name
    latest = next((gate.checks for gate in reversed(verdicts) if gate.checks), ())
    closest = min(latest, key=lambda check: margin(check.value, check.op, check.threshold), default=None)
    return closest.name if closest is not None else ""


def _check(gate: KeptGate | None, name: str) -> Check | None:
    return next((check for check in gate.checks if check.name == name), None) if gate is not None else None


def trend(values: Sequence[float]) -> Trend | None:
    """Return the mean change per night with its interval; None with too few nights or if the interval covers 0."""
    if len(values) < MIN_NIGHTS:
        return None
    from scipy.stats import t

    changes = [later - earlier for earlier, later in pairwise(values)]
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(changes) - 1))
    half, mean = quantile * stdev(changes) / math.sqrt(len(changes)), fmean(changes)
    return Trend(mean, mean - half, mean + half) if abs(mean) > half else None


def nights_left(course: Course) -> tuple[float, float] | None:
    """Return in how many more nights the value would cross its threshold, at the fastest and at the slowest.

    None if it does not move towards one, or if that would take longer than the nights observed, since a prediction so
    far ahead is unreliable.
    """
    moving, seen = course.trend, course.alike
    if moving is None or seen[-1].failed or (ahead := _ahead(seen[-1], moving)) is None:
        return None
    if ahead / abs(moving.change) > len(seen):
        return None
    slow, quick = sorted(map(abs, (moving.low, moving.high)))
    return ahead / quick, ahead / slow


def towards(course: Course) -> bool:
    """Return whether the value moves significantly towards a threshold."""
    moving = course.trend
    return moving is not None and not course.alike[-1].failed and _ahead(course.alike[-1], moving) is not None


def _ahead(last: Reading, moving: Trend) -> float | None:
    """Return the distance to the threshold that the value moves towards; None if there is none."""
    assert last.check is not None and last.value is not None
    low, high = {
        ">=": (True, False), ">": (True, False), "<=": (False, True), "<": (False, True), "within": (True, True),
    }.get(last.check.op, (False, False))  # fmt: skip
    falling = moving.change < 0
    if not last.bounds or not (low if falling else high):
        return None
    return abs(last.value - (last.bounds[0] if falling else last.bounds[-1]))


def wanted(check: Check) -> str:
    """Return the comparison and its threshold, in words."""
    return f"{check.op} {said(check.threshold)}"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that changed.

    Attributes:
        what: `newly failed`, `still failing`, `drift`, `threshold`, `passes again`; `unjudged` for a whole night.
        gate: the gate; for a whole night, how it ended.
        since: the night when it began.
        words: the figures.
    """

    what: str
    gate: str
    since: str
    words: str


def changes(nights: Sequence[KeptNight], courses: Sequence[Course]) -> list[Change]:
    """Return all changes, the most urgent first, then in the order of the gates.

    Args:
        nights: the nights to review, oldest first.
        courses: every gate over these nights.
    """
    found = [change for course in courses for change in _of(course)]
    found += [
        Change("unjudged", night.outcome.value, day(night), night.verdict)
        for night in nights
        if not night.gates and night.outcome is not NightOutcome.PASSED
    ]
    return sorted(found, key=lambda change: _ORDER.index(change.what))


def day(night: KeptNight) -> str:
    """Return the date when a night began."""
    return night.began.strftime("%Y-%m-%d")


def _of(course: Course) -> Iterator[Change]:
    known = [one for one in (course.before, *course.readings) if one is not None and one.judged]
    if not known:
        return
    last, streak = known[-1], _streak(known)
    if last.failed:
        old = streak[0] is course.before or (course.before is None and len(streak) == len(known) > 1)
        yield Change(STILL if old else NEW, course.gate, day(streak[0].night), reason(last))
    elif any(one.failed for one in known):
        failed = sum(one.failed for one in known)
        yield Change(AGAIN, course.gate, day(streak[0].night), f"failed in {failed} of {len(known)} nights")
    yield from _moved(course)
    if towards(course):
        first, last = course.alike[0], course.alike[-1]
        yield Change("drift", course.gate, day(first.night), f"{_span(first, last)}{_left(course)}")


def _streak(known: Sequence[Reading]) -> Sequence[Reading]:
    start = len(known)
    while start and known[start - 1].failed == known[-1].failed:
        start -= 1
    return known[start:]


def _moved(course: Course) -> Iterator[Change]:
    """Yield thresholds that changed with the configuration, not those that depend on each night's data."""
    known = [one for one in (course.before, *course.readings) if one is not None and one.checks]
    for earlier, later in pairwise(known):
        if earlier.night.config_sha256 != later.night.config_sha256:
            for name in sorted(earlier.checks.keys() & later.checks.keys()):
                before, after = wanted(earlier.checks[name]), wanted(later.checks[name])
                if before != after:
                    yield Change("threshold", course.gate, day(later.night), f"{name}: {before} → {after}")


def reason(reading: Reading) -> str:
    """Return why a gate failed, with figures if there are any."""
    gate = reading.gate
    failed = [check for check in gate.checks if not check.passed] if gate is not None else []
    if failed:
        return f"{failed[0].name} {said(failed[0].value)}, wanted {wanted(failed[0])}"
    return gate.why if gate is not None else ""


def _span(first: Reading, last: Reading) -> str:
    name, edge = (last.check.name, wanted(last.check)) if last.check is not None else ("", "")
    return f"{name} {said(first.value)} → {said(last.value)}, wanted {edge}"


def _left(course: Course) -> str:
    left = nights_left(course)
    if left is None:
        return ""
    quick, slow = math.floor(left[0]), math.ceil(left[1])
    return f"; at this pace it crosses in {quick} to {slow} nights"
