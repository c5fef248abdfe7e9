"""Small pictures of a page, one idea each: the same drawing as SVG for the page and as PNG for slides."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rc1_lib.plots import canvas
from rc1_lib.plots.canvas import BAD, GRID, INK, NEW, OLD, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {INK: "ink", OLD: "old", NEW: "new", BAD: "bad", QUIET: "quiet", GRID: "grid"}
"""Colour -> its name in the page's style sheet."""
_WIDTH, _TYPE = 3.6, 8.5
_LONGEST = 28
"""Characters of a name that leave room for what it names."""
_SLIDE_DPI = 400
_SETTINGS: Any = {
    "svg.fonttype": "none", "text.parse_math": False, "axes.linewidth": 0.7, "xtick.major.width": 0.6,
    "ytick.major.width": 0.6, "lines.solid_capstyle": "round",
}  # fmt: skip

Interval = tuple[float, float | None, float | None]
"""A value with the ends of its interval; None: there is none."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture.

    Attributes:
        name: of the PNG, without its suffix.
        title: what it shows.
        caption: how to read it.
        svg: for the page.
        png: for a slide.
        legend: colour's name -> what it stands for.
    """

    name: str
    title: str
    caption: str
    svg: Markup
    png: bytes
    legend: tuple[tuple[str, str], ...] = ()


def draw(
    name: str,
    title: str,
    caption: str,
    paint: Callable[[Axes], None],
    height: float = 2.2,
    legend: Sequence[tuple[str, str]] = (),
    *,
    slide: bool = True,
) -> Chart:
    """Draw once, write twice; without a slide only once."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with canvas.drawing, mpl.rc_context({**_SETTINGS, "svg.hashsalt": f"rc1 {name}"}):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.subplots()
        axes.tick_params(labelsize=_TYPE, colors=INK, length=2.5, color=QUIET)
        canvas.calm(axes)
        paint(axes)
        svg, png = io.StringIO(), b""
        for patch in (figure.patch, axes.patch):
            patch.set(facecolor="none", edgecolor="none")
        unsaid = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        FigureCanvasSVG(figure).print_svg(svg, metadata=unsaid)  # type: ignore[no-untyped-call]
        if slide:
            _captioned(figure, title, legend)
            for patch in (figure.patch, axes.patch):
                patch.set(facecolor="white")
            figure.set_dpi(_SLIDE_DPI)
            png = canvas.png_of(figure)
    return Chart(name, title, caption, _inline(svg.getvalue(), name, f"{title}. {caption}"), png, tuple(legend))


def _captioned(figure: Figure, title: str, legend: Sequence[tuple[str, str]]) -> None:
    """A slide is shown alone, while the page has title and legend of its own, in its own type."""
    from matplotlib.lines import Line2D

    colours = {called: colour for colour, called in _NAMES.items()}
    if legend:
        marks = [Line2D([], [], linestyle="none", marker="s", color=colours[one], label=words) for one, words in legend]
        where: Any = "outside lower center"
        figure.legend(handles=marks, loc=where, ncols=len(marks), fontsize=_TYPE, frameon=False, labelcolor=INK)
    figure.suptitle(title, fontsize=_TYPE + 1.5, color=INK, x=0.02, ha="left", weight="bold")


def _inline(svg: str, name: str, words: str) -> Markup:
    """The drawing without its frame: names of its own, colours by name, the page's type, as wide as there is room."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    for side in ("height", "width"):
        body = re.sub(rf"(<svg[^>]*?) {side}=\"[^\"]*\"", r"\1", body)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    for colour, called in _NAMES.items():
        body = re.sub(colour, f"var(--{called})", body, flags=re.IGNORECASE)
    label = Markup("<svg role='img' aria-label='{}'").format(words)
    return Markup(body.replace("<svg", label, 1))


def lines(axes: Axes, steps: Sequence[float], seeds: Sequence[Sequence[float]], median: Sequence[float]) -> None:
    """A value over the steps: a strong line, and below it the band over seeds, or every step's own value."""
    if len(seeds) > 1:
        low, high = ([edge(values) for values in zip(*seeds, strict=True)] for edge in (min, max))
        axes.fill_between(steps, low, high, color=NEW, alpha=0.18, linewidth=0)
    else:
        axes.plot(steps, seeds[0], color=QUIET, linewidth=0.8, alpha=0.7)
    axes.plot(steps, median, color=NEW, linewidth=1.8)
    axes.grid(True, axis="y", color=GRID, linewidth=0.7)
    axes.locator_params(nbins=4)
    axes.set_xlabel("step", fontsize=_TYPE, color=INK)


def pairs(axes: Axes, rows: Sequence[tuple[str, Interval | None, Interval | None]]) -> None:
    """Before and after of each group, in %, on one line a group."""
    for place, (_, before, after) in enumerate(rows):
        if before is not None and after is not None:
            axes.plot([100 * before[0], 100 * after[0]], [place, place], color=GRID, linewidth=3, zorder=1)
        for found, shift, colour, mark in ((before, -0.16, OLD, "D"), (after, 0.16, NEW, "o")):
            if found is not None:
                _whisker(axes, found, place + shift, colour, mark, 100.0)
    named(axes, [label for label, _, _ in rows])
    axes.set_xlim(-3, 103)
    axes.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])


def dots(
    axes: Axes, rows: Sequence[tuple[str, Interval]], others: Sequence[float | None] = (), zero: bool = False
) -> None:
    """A value with its interval on each line; hollow marks show another value of the same kind."""
    for place, (_, found) in enumerate(rows):
        _whisker(axes, found, place, NEW, "o", 1.0)
    for place, other in enumerate(others):
        if other is not None:
            axes.plot([other], [place], marker="D", ms=5, mfc="none", mec=OLD, mew=1.3)
    if zero:
        axes.axvline(0.0, color=BAD, linewidth=0.9, linestyle=(0, (3, 2)))
    named(axes, [label for label, _ in rows])


def _whisker(axes: Axes, found: Interval, place: float, colour: str, mark: str, scale: float) -> None:
    value, low, high = found
    if low is not None and high is not None:
        axes.hlines(place, scale * low, scale * high, color=colour, linewidth=1.5, alpha=0.75)
    axes.plot([scale * value], [place], linestyle="none", marker=mark, markersize=5, color=colour)


def named(axes: Axes, labels: Sequence[str]) -> None:
    """A name a line, from above."""
    axes.set_yticks(range(len(labels)), list(labels))
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(True, axis="x", color=GRID, linewidth=0.7)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def bars(axes: Axes, labels: Sequence[str], before: Sequence[float], after: Sequence[float]) -> None:
    """Two shares a group, in %, with their numbers."""
    for shift, values, colour in ((-0.2, before, OLD), (0.2, after, NEW)):
        places, heights = [place + shift for place in range(len(labels))], [100 * value for value in values]
        texts = [f"{height:.0f}" for height in heights]
        canvas.bars(axes, places, heights, texts, size=_TYPE - 0.5, width=0.36, color=colour)
    axes.set_xticks(range(len(labels)), list(labels))
    axes.tick_params(axis="x", length=0)
    canvas.no_height(axes)


def histogram(axes: Axes, width: float, before: Sequence[float], after: Sequence[float], unit: str) -> None:
    """Two distributions over the same bins from 0 on, each `width` wide, as shares of their rows."""
    edges = [width * number for number in range(len(after) + 1)]
    axes.bar(edges[:-1], after, width=width, align="edge", color=NEW, alpha=0.55, linewidth=0)
    axes.stairs(before, edges, color=OLD, linewidth=1.6)
    canvas.no_height(axes)
    axes.set_xlabel(unit, fontsize=_TYPE, color=INK)


def scatter(axes: Axes, x: Sequence[float], y: Sequence[float], good: Sequence[bool], names: tuple[str, str]) -> None:
    """Rank against rank; those that succeeded are filled."""
    axes.plot([0, 100], [0, 100], color=GRID, linewidth=1.0)
    for wanted, face, line in ((False, "none", BAD), (True, NEW, "none")):
        chosen = [place for place, fine in enumerate(good) if fine == wanted]
        across, up = ([values[place] for place in chosen] for values in (x, y))
        axes.scatter(across, up, s=11, linewidths=0.9, facecolors=face, edgecolors=line, alpha=0.75)
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.set_xlabel(names[0], fontsize=_TYPE, color=INK)
    axes.set_ylabel(names[1], fontsize=_TYPE, color=INK)


def reliability(axes: Axes, bins: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> None:
    """Share of successes by score, in bins of equal counts."""
    for found, colour, mark in ((others, OLD, "D"), (bins, NEW, "o")):
        scores, shares = zip(*found, strict=True)
        axes.plot(scores, [100 * share for share in shares], color=colour, marker=mark, markersize=4)
    axes.set_ylim(-3, 103)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_xlabel("score", fontsize=_TYPE, color=INK)
    axes.set_ylabel("success, %", fontsize=_TYPE, color=INK)


@dataclass(frozen=True, slots=True)
class Points:
    """Values over days, each as long as `days`; None where there is none.

    Attributes:
        days: when, in days.
        labels: a few of them, by their day.
        values: of each.
        intervals: of each value.
        bounds: the thresholds of each.
        failed: whether a gate failed there.
        trend: at its first and its last value; None where there is none.
    """

    days: Sequence[float]
    labels: Sequence[tuple[float, str]]
    values: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None] = ()
    bounds: Sequence[Sequence[float]] = ()
    failed: Sequence[bool] = ()
    trend: tuple[tuple[float, float], tuple[float, float]] | None = None


def over_days(axes: Axes, *series: Points) -> None:
    """Values over days with their thresholds; a second series is the other one's companion. Gaps stay gaps."""
    for points, colour, mark in zip(series, (NEW, OLD), ("o", "D"), strict=False):
        heights = [math.nan if value is None else value for value in points.values]
        axes.plot(points.days, heights, color=colour, linewidth=1.4, marker=mark, markersize=3.5)
        for day, ends in zip(points.days, points.intervals, strict=False):
            if ends is not None:
                axes.vlines(day, *ends, color=colour, linewidth=1.2, alpha=0.45)
        for place in range(max(map(len, points.bounds), default=0)):
            edge = [bound[place] if place < len(bound) else math.nan for bound in points.bounds]
            axes.plot(points.days, edge, color=BAD, linewidth=1.1, linestyle=(0, (4, 2)), drawstyle="steps-post")
        for day, height, failed in zip(points.days, heights, points.failed, strict=False):
            if failed and math.isnan(height):
                axes.plot([day], [0.04], marker="X", markersize=7, color=BAD, transform=axes.get_xaxis_transform())
            elif failed:
                axes.plot([day], [height], marker="X", markersize=7, color=BAD)
        if points.trend is not None:
            axes.plot(*zip(*points.trend, strict=True), color=OLD, linewidth=2.2, alpha=0.6)
    _dated(axes, series[0])
    axes.grid(True, axis="y", color=GRID, linewidth=0.7)
    axes.locator_params(axis="y", nbins=4)


def verdicts(axes: Axes, names: Sequence[str], points: Points, rows: Sequence[Sequence[bool | None]]) -> None:
    """A line a name, a mark a day: a dot where it passed, a cross where it failed, a dash where it was not judged."""
    kinds: tuple[tuple[bool | None, str, str], ...] = ((True, NEW, "o"), (False, BAD, "X"), (None, QUIET, "_"))
    for place, row in enumerate(rows):
        for kind, colour, mark in kinds:
            days = [day for day, found in zip(points.days, row, strict=True) if found is kind]
            axes.plot(days, [place] * len(days), linestyle="none", marker=mark, markersize=4.5, color=colour)
    named(axes, [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in names])
    axes.grid(False)
    _dated(axes, points)


def _dated(axes: Axes, points: Points) -> None:
    axes.set_xticks([day for day, _ in points.labels], [words for _, words in points.labels])
    room = 0.04 * (points.days[-1] - points.days[0]) or 0.5
    axes.set_xlim(points.days[0] - room, points.days[-1] + room)
