"""What changed in a stretch of nights: what turned red or green, whose threshold moved, what drifts towards one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rc1_lib.preflight.nights import KeptNight, NightOutcome
from rc1_lib.release.report.course import Course, Reading, nights_left, towards, wanted
from rc1_lib.release.report.policy import said

_ORDER = ("new red", "still red", "drift", "threshold", "green again", "unjudged")

NOTHING = "No gate turned red or green, no threshold moved, and nothing drifts towards one."


@dataclass(frozen=True, slots=True)
class Change:
    """Something that is otherwise than it was.

    Attributes:
        what: `new red`, `still red`, `drift`, `threshold`, `green again`; `unjudged` of a whole night.
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
        if not night.gates and night.outcome is not NightOutcome.GREEN
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
    if last.red:
        old = streak[0] is course.before or (course.before is None and len(streak) == len(known) > 1)
        yield Change("still red" if old else "new red", course.gate, day(streak[0].night), reason(last))
    elif any(one.red for one in known):
        reds = sum(one.red for one in known)
        yield Change("green again", course.gate, day(streak[0].night), f"was red in {reds} of {len(known)} nights")
    yield from _moved(course)
    if towards(course):
        first, last = course.alike[0], course.alike[-1]
        yield Change("drift", course.gate, day(first.night), f"{_span(first, last)}{_left(course)}")


def _streak(known: Sequence[Reading]) -> Sequence[Reading]:
    start = len(known)
    while start and known[start - 1].red == known[-1].red:
        start -= 1
    return known[start:]


def _moved(course: Course) -> Iterator[Change]:
    """Thresholds that moved with the configuration; those that are worked out from each night's data always do."""
    told = [one for one in (course.before, *course.readings) if one is not None and one.checks]
    for earlier, later in pairwise(told):
        if earlier.night.config_sha256 != later.night.config_sha256:
            for name in sorted(earlier.checks.keys() & later.checks.keys()):
                before, after = wanted(earlier.checks[name]), wanted(later.checks[name])
                if before != after:
                    yield Change("threshold", course.gate, day(later.night), f"{name}: {before} → {after}")


def reason(reading: Reading) -> str:
    """Why a gate is red, in figures where there are any."""
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
