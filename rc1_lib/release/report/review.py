"""The review of the nightly runs: one HTML page about their history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rc1_lib.errors import RC1Error
from rc1_lib.plots.page import Chart, Points, draw, over_days, verdicts
from rc1_lib.preflight.nights import NIGHTS, KeptNight, NightOutcome, parse_nights
from rc1_lib.release.report.html import FAILURE, Cell, Head, Section, Table, render
from rc1_lib.release.report.sources import (
    Citation,
    Format,
    Source,
    Sources,
    dollars,
    is_number,
    percent,
    plain,
    said,
    shown,
)
from rc1_lib.release.report.trends import (
    NOTHING,
    Change,
    Course,
    Reading,
    changes,
    courses,
    day,
    reason,
    wanted,
    within,
)
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import write_text
from rc1_lib.workspace.file_hashes import sha256_file

PAGE = "reports/release/review.html"
_VERDICT = 400
"""Maximum characters of a verdict at the top; the table of nights has the whole text."""
_MOST_LABELS = 4
_LEGEND = (("new", "value"), ("bad", "threshold, × failed"))
_TREND = ("old", "trend")
_CHARTS = (
    ("Calls", "Attempts at the judge, replays not counted", ("calls",)),
    ("Hit rate, %", "Replays, as a share of all scores", ("hit_rate",)),
    ("Rejected with a 429, %", "As a share of calls that were answered or rejected so", ("share_429",)),
    ("Latency, ms", "Of answered calls", ("latency_ms_median", "latency_ms_p95")),
    ("Cost, $", "As far as known", ("usd",)),
    ("Unstable scores, %", "Dialogues whose samples disagree", ("unstable",)),
)


@dataclass(frozen=True, slots=True)
class Review:
    """A review that was written.

    Attributes:
        path: the page's path, relative to the workspace.
        sha256: its SHA-256.
        nights: the nights that it covers, oldest first.
        changes: what changed, the most urgent first.
    """

    path: str
    sha256: str
    nights: tuple[KeptNight, ...]
    changes: tuple[Change, ...]


def write_review(run: Run, days: int) -> Review:
    """Write `reports/release/review.html` about the `days` days up to the latest night.

    Raises:
        RC1Error: when there is no night, or the history cannot be read.
    """
    sources, path = Sources(run), run.workspace.path(NIGHTS)
    source = sources.read("nights", path, lambda content: parse_nights(content, str(path)))
    if source is None or not source.body:
        raise RC1Error(
            f"{path}: has no nights yet, so there is nothing to review; rc1/nightly writes a line each night "
            f"(for one now: `rc1 serve`, then `prefect deployment run rc1/nightly`)"
        )
    shown, over = within(source.body, days), courses(source.body, days)
    found = changes(shown, over)
    facts: list[tuple[str, object]] = [("nights", len(shown)), ("from", day(shown[0])), ("to", day(shown[-1]))]
    facts.append(("passed", sum(not _failed(night) for night in shown)))
    head = Head(f"RC1 review, {day(shown[-1])}", "RC1 review", _failed(shown[-1]), facts)
    parts = [changed(source, found), gates(source, shown, over), traffic(source, shown), history(source, shown)]
    failed = [(day(night), night.outcome, _short(night.verdict)) for night in reversed(shown) if _failed(night)]
    text = render("review.html.j2", PAGE, head, parts, sources, count=len(shown), failed_nights=failed)
    write_text(run.workspace.path(PAGE), text)
    return Review(PAGE, sha256_file(run.workspace.path(PAGE)), tuple(shown), tuple(found))


def _failed(night: KeptNight) -> bool:
    return night.outcome is not NightOutcome.PASSED


def _short(text: str) -> str:
    return text if len(text) <= _VERDICT else f"{text[:_VERDICT]} …"


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of the judge's traffic: its name in the history, its title on the page, its format and scale."""

    name: str
    title: str
    form: Format
    scale: float = 1.0


def _milliseconds(value: float) -> str:
    return f"{value:,.0f}\u00a0ms"


_TRAFFIC = (
    _Figure("calls", "calls", plain),
    _Figure("hit_rate", "hit rate", percent, 100.0),
    _Figure("share_429", "rejected with a 429", percent, 100.0),
    _Figure("latency_ms_median", "latency, median", _milliseconds),
    _Figure("latency_ms_p95", "latency, 95th percentile", _milliseconds),
    _Figure("usd", "cost", dollars),
    _Figure("unstable", "unstable scores", percent, 100.0),
)
_BY_NAME = {one.name: one for one in _TRAFFIC}


def changed(source: Source, found: Sequence[Change]) -> Section:
    """Return what changed, as a table."""
    rows: list[Sequence[Cell]] = [
        (f"{change.gate}: {change.what} since {change.since}", Citation(change.words, source, change.gate))
        for change in found
    ]
    lead = "Compared with the first of these nights, or the last one before them." if rows else NOTHING
    table = Table(f"{len(rows)} changes", ("what", "figures"), rows, True)
    return Section("changed", "What changed", lead, (), (table,))


def gates(source: Source, nights: Sequence[KeptNight], courses: Sequence[Course]) -> Section:
    """Return charts and a table of every gate's deciding value over the nights."""
    if not courses:
        return Section("gates", "The gates over the nights", "No gate was judged in these nights.")
    rows: list[Sequence[Cell]] = [_row(source, course, one) for course in courses for one in reversed(course.readings)]
    drawn = [_overview(nights, courses)]
    drawn += [_course_chart(place, course) for place, course in enumerate(courses) if _drawable(course)]
    left_out = [course.gate for course in courses if not _drawable(course)]
    lead = "For each gate, the check that failed last, or else came closest to its threshold in the latest night." + (
        f" Without a number to draw: {', '.join(left_out)}." if left_out else ""
    )
    table = Table("Every gate, every night", ("gate", "night", "verdict", "check", "value", "wanted", "interval"), rows)
    return Section("gates", "The gates over the nights", lead, drawn, (table,))


def traffic(source: Source, nights: Sequence[KeptNight]) -> Section:
    """Return the judge's traffic, night by night."""
    charts = [
        _traffic_chart(place, title, caption, nights, [_BY_NAME[name] for name in names])
        for place, (title, caption, names) in enumerate(_CHARTS)
        if any(is_number(night.judge.get(name)) for night in nights for name in names)
    ]
    rows: list[Sequence[Cell]] = [
        (
            day(night),
            *(
                Citation(shown(night.judge.get(one.name), one.form), source, f"{_exactly(night)}: judge.{one.name}")
                for one in _TRAFFIC
            ),
        )
        for night in reversed(nights)
    ]
    lead = "From the lines that the judge's stores logged since each night began."
    if not any(night.judge.get("calls") for night in nights):
        lead += " No judge was called."
    head = ("night", *(one.title for one in _TRAFFIC))
    return Section("traffic", "The judge's traffic", lead, charts, (Table("Night by night", head, rows),))


def history(source: Source, nights: Sequence[KeptNight]) -> Section:
    """Return how every night ended."""
    rows: list[Sequence[Cell]] = [
        (
            _exactly(night),
            Citation(FAILURE if night.outcome is NightOutcome.FAILED else str(night.outcome), source, _exactly(night)),
            night.verdict,
            f"revoked: {night.revoked}" if night.revoked is not None else "–",
        )
        for night in reversed(nights)
    ]
    table = Table(f"{len(rows)} nights", ("night", "ended", "verdict", "ticket"), rows)
    return Section("nights", "The nights", "The latest comes first.", (), (table,))


def _exactly(night: KeptNight) -> str:
    return night.began.strftime("%Y-%m-%d %H:%M")


def _row(source: Source, course: Course, one: Reading) -> Sequence[Cell]:
    check = one.check
    verdict = "–" if one.gate is None else FAILURE if one.failed else one.gate.status
    place = f"{_exactly(one.night)}: {course.gate}"
    if check is None:
        return (course.gate, day(one.night), verdict, reason(one) or "–", "–", "–", "–")
    return (
        course.gate, day(one.night), verdict, check.name, Citation(said(check.value), source, f"{place}: {check.name}"),
        wanted(check),
        "–" if check.interval is None else f"{said(check.interval.low)} to {said(check.interval.high)}",
    )  # fmt: skip


def _drawable(course: Course) -> bool:
    return any(one.value is not None for one in course.readings)


def _overview(nights: Sequence[KeptNight], courses: Sequence[Course]) -> Chart:
    rows = [[not one.failed if one.judged else None for one in course.readings] for course in courses]
    names, points = [course.gate for course in courses], _points(nights, lambda _: None)
    return draw(
        "nights-overview", "Every gate, every night", "Dot: passed or waived; cross: failed; dash: not judged",
        lambda axes: verdicts(axes, names, points, rows), 0.6 + 0.17 * len(names), slide=False,
    )  # fmt: skip


def _course_chart(place: int, course: Course) -> Chart:
    nights = [one.night for one in course.readings]
    base = _points(nights, lambda _: None)
    moving, alike = course.trend, course.alike
    line = None
    if moving is not None:
        ends = [base.days[course.readings.index(one)] for one in (alike[0], alike[-1])]
        middle, reach = fmean(one.value or 0.0 for one in alike), moving.change * (len(alike) - 1) / 2
        line = ((ends[0], middle - reach), (ends[1], middle + reach))
    points = Points(
        base.days, base.labels, [one.value for one in course.readings], [_ends(one) for one in course.readings],
        [one.bounds for one in course.readings], [one.failed for one in course.readings], line,
    )  # fmt: skip
    return draw(
        f"nights-{place}", course.gate, course.decisive, lambda axes: over_days(axes, points), 1.8,
        (*_LEGEND, _TREND) if line else _LEGEND, slide=False,
    )  # fmt: skip


def _ends(one: Reading) -> tuple[float, float] | None:
    interval = one.check.interval if one.check is not None else None
    if interval is None or one.value is None or not (is_number(interval.low) and is_number(interval.high)):
        return None
    return interval.low, interval.high


def _traffic_chart(
    place: int, title: str, caption: str, nights: Sequence[KeptNight], figures: Sequence[_Figure]
) -> Chart:
    series = [_points(nights, lambda night, one=one: _scaled(night, one)) for one in figures]  # type: ignore[misc]
    legend = tuple(zip(("new", "old"), (one.title for one in figures), strict=False)) if len(figures) > 1 else ()
    return draw(f"traffic-{place}", title, caption, lambda axes: over_days(axes, *series), 1.6, legend, slide=False)


def _scaled(night: KeptNight, figure: _Figure) -> float | None:
    value = night.judge.get(figure.name)
    return figure.scale * value if is_number(value) else None


def _points(nights: Sequence[KeptNight], value: Callable[[KeptNight], float | None]) -> Points:
    start = nights[0].began
    days = [(night.began - start).total_seconds() / 86_400 for night in nights]
    step = max(1, -(-len(nights) // _MOST_LABELS))
    labels = [(days[place], nights[place].began.strftime("%m-%d")) for place in range(len(nights) - 1, -1, -step)]
    return Points(days, labels[::-1], [value(night) for night in nights])
