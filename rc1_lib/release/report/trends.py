"""Every gate over the nights: its readings, where they drift, and what changed."""

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
"""Fewer say nothing: of two changes the interval is more than sixty times as wide as they lie apart."""
CONFIDENCE = 0.99
"""Some twenty gates are looked at each time."""
NEW, STILL, AGAIN = "newly failed", "still failing", "passes again"
_ORDER = (NEW, STILL, "drift", "threshold", AGAIN, "unjudged")
NOTHING = "No gate passed or failed otherwise than before, no threshold moved, and nothing drifts towards one."


@dataclass(frozen=True, slots=True)
class Reading:
    """What a gate said in one night.

    Attributes:
        night: which.
        gate: its verdict: of the first round that failed, else of the last that judged it; None where none did.
        check: the deciding check as it was then; None where it was not judged.
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
        """Whether it says anything: it was not judged, or waits for another one, otherwise."""
        return self.gate is not None and self.gate.status != Status.WAITING

    @property
    def value(self) -> float | None:
        """The deciding value; None where there was no number."""
        return self.check.value if self.check is not None and is_number(self.check.value) else None

    @property
    def checks(self) -> Mapping[str, Check]:
        """All its checks by name."""
        return {check.name: check for check in self.gate.checks} if self.gate is not None else {}

    @property
    def bounds(self) -> tuple[float, ...]:
        """The thresholds of the deciding check, as far as they are numbers."""
        given = self.check.threshold if self.check is not None else None
        return tuple(one for one in (given if isinstance(given, list) else [given]) if is_number(one))


@dataclass(frozen=True, slots=True)
class Trend:
    """The mean change from one night to the next, with its interval, which leaves out 0."""

    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Course:
    """A gate over the nights.

    Attributes:
        gate: its name.
        decisive: the check that is followed: the one that failed last, else the closest call of the latest night.
        readings: one a night, oldest first.
        before: the last reading from before these nights; None where there is none.
    """

    gate: str
    decisive: str
    readings: tuple[Reading, ...]
    before: Reading | None

    @property
    def trend(self) -> Trend | None:
        """How it moved since the configuration is what it is; None where that is not certain."""
        return trend([one.value for one in self.alike if one.value is not None])

    @property
    def alike(self) -> Sequence[Reading]:
        """The latest readings with a value, back to where another configuration judged."""
        known = [one for one in self.readings if one.value is not None]
        start = len(known)
        while start and known[start - 1].night.config_sha256 == known[-1].night.config_sha256:
            start -= 1
        return known[start:]


def within(nights: Sequence[KeptNight], days: int) -> Sequence[KeptNight]:
    """The nights of so many days that end with the latest one: by the history, not by the clock."""
    return [night for night in nights if night.began > nights[-1].began - timedelta(days=days)]


def courses(nights: Sequence[KeptNight], days: int) -> list[Course]:
    """Every gate that was judged in the last `days` days, in the order in which gates are judged."""
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
    """The mean change a night with its interval; None where the nights are too few or the interval covers 0."""
    if len(values) < MIN_NIGHTS:
        return None
    from scipy.stats import t

    changes = [later - earlier for earlier, later in pairwise(values)]
    quantile = float(t.ppf((1 + CONFIDENCE) / 2, len(changes) - 1))
    half, mean = quantile * stdev(changes) / math.sqrt(len(changes)), fmean(changes)
    return Trend(mean, mean - half, mean + half) if abs(mean) > half else None


def nights_left(course: Course) -> tuple[float, float] | None:
    """In how many further nights the value would cross its threshold, at the quickest and at the slowest.

    None where it does not move towards one, and where that is further off than the nights that it was seen to move in:
    so far ahead nothing can be predicted.
    """
    moving, seen = course.trend, course.alike
    if moving is None or seen[-1].failed or (ahead := _ahead(seen[-1], moving)) is None:
        return None
    if ahead / abs(moving.change) > len(seen):
        return None
    slow, quick = sorted(map(abs, (moving.low, moving.high)))
    return ahead / quick, ahead / slow


def towards(course: Course) -> bool:
    """Whether the value moves towards a threshold, for certain."""
    moving = course.trend
    return moving is not None and not course.alike[-1].failed and _ahead(course.alike[-1], moving) is not None


def _ahead(last: Reading, moving: Trend) -> float | None:
    """How far off the threshold lies that it moves towards; None where none does."""
    assert last.check is not None and last.value is not None
    low, high = {
        ">=": (True, False), ">": (True, False), "<=": (False, True), "<": (False, True), "within": (True, True),
    }.get(last.check.op, (False, False))  # fmt: skip
    falling = moving.change < 0
    if not last.bounds or not (low if falling else high):
        return None
    return abs(last.value - (last.bounds[0] if falling else last.bounds[-1]))


def wanted(check: Check) -> str:
    """The comparison and its threshold, in words."""
    return f"{check.op} {said(check.threshold)}"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is otherwise than it was.

    Attributes:
        what: `newly failed`, `still failing`, `drift`, `threshold`, `passes again`; `unjudged` of a whole night.
        gate: whose; of a night how it ended.
        since: the night from which on it is so.
        words: the figures.
    """

    what: str
    gate: str
    since: str
    words: str


def changes(nights: Sequence[KeptNight], courses: Sequence[Course]) -> list[Change]:
    """The most urgent first, and among equals the gates' own order.

    Args:
        nights: those that are looked at, oldest first.
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
    """When it began, for people."""
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
    """Thresholds that moved with the configuration; those that are worked out from each night's data always do."""
    known = [one for one in (course.before, *course.readings) if one is not None and one.checks]
    for earlier, later in pairwise(known):
        if earlier.night.config_sha256 != later.night.config_sha256:
            for name in sorted(earlier.checks.keys() & later.checks.keys()):
                before, after = wanted(earlier.checks[name]), wanted(later.checks[name])
                if before != after:
                    yield Change("threshold", course.gate, day(later.night), f"{name}: {before} → {after}")


def reason(reading: Reading) -> str:
    """Why a gate failed, in figures where there are any."""
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
    return f"; at this pace crossed in {quick} to {slow} nights"
