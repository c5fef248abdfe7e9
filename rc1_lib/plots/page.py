"""Small charts for a page, each drawn once and written as SVG for the page and as PNG for slides."""

from __future__ import annotations

import io
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
_SLIDE_DPI = 400
_SETTINGS: Any = {
    "svg.fonttype": "none", "text.parse_math": False, "axes.linewidth": 0.7, "xtick.major.width": 0.6,
    "ytick.major.width": 0.6, "lines.solid_capstyle": "round",
}  # fmt: skip

Interval = tuple[float, float | None, float | None]
"""A value with the ends of its interval, None if there is no interval."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart.

    Attributes:
        name: file name of the PNG, without its suffix.
        title: what it shows.
        caption: how to read it.
        svg: the chart for the page.
        png: the chart for a slide.
        legend: pairs of a colour's name and its meaning.
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
) -> Chart:
    """Draw a chart once, and write it as SVG and as PNG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with canvas.drawing, mpl.rc_context({**_SETTINGS, "svg.hashsalt": f"rc1 {name}"}):
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.subplots()
        axes.tick_params(labelsize=_TYPE, colors=INK, length=2.5, color=QUIET)
        canvas.calm(axes)
        paint(axes)
        svg = io.StringIO()
        for patch in (figure.patch, axes.patch):
            patch.set(facecolor="none", edgecolor="none")
        no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        FigureCanvasSVG(figure).print_svg(svg, metadata=no_metadata)  # type: ignore[no-untyped-call]
        _captioned(figure, title, legend)
        for patch in (figure.patch, axes.patch):
            patch.set(facecolor="white")
        figure.set_dpi(_SLIDE_DPI)
        png = canvas.png_of(figure)
    return Chart(name, title, caption, _inline(svg.getvalue(), name, f"{title}. {caption}"), png, tuple(legend))


def _captioned(figure: Figure, title: str, legend: Sequence[tuple[str, str]]) -> None:
    """Add title and legend for a slide; the page shows them in its own type instead."""
    from matplotlib.lines import Line2D

    colours = {name: colour for colour, name in _NAMES.items()}
    if legend:
        marks = [
            Line2D([], [], linestyle="none", marker="s", color=colours[name], label=words) for name, words in legend
        ]
        where: Any = "outside lower center"
        figure.legend(handles=marks, loc=where, ncols=len(marks), fontsize=_TYPE, frameon=False, labelcolor=INK)
    figure.suptitle(title, fontsize=_TYPE + 1.5, color=INK, x=0.02, ha="left", weight="bold")


def _inline(svg: str, name: str, words: str) -> Markup:
    """Prepare an SVG for the page: unique ids, colours and type of the page's style sheet, and no fixed size."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    for side in ("height", "width"):
        body = re.sub(rf"(<svg[^>]*?) {side}=\"[^\"]*\"", r"\1", body)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', body)
    body = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", body)
    for colour, css_name in _NAMES.items():
        body = re.sub(colour, f"var(--{css_name})", body, flags=re.IGNORECASE)
    label = Markup("<svg role='img' aria-label='{}'").format(words)
    return Markup(body.replace("<svg", label, 1))


def lines(axes: Axes, steps: Sequence[float], seeds: Sequence[Sequence[float]], median: Sequence[float]) -> None:
    """Draw the median over steps as a strong line over the band of all seeds, or over the values of a single seed."""
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
    """Draw values before and after in per cent, one line per group."""
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
    """Draw one value with its interval per line; hollow marks are other values of the same kind."""
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
    """Label the lines with names, from the top."""
    axes.set_yticks(range(len(labels)), list(labels))
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.grid(True, axis="x", color=GRID, linewidth=0.7)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def bars(axes: Axes, labels: Sequence[str], before: Sequence[float], after: Sequence[float]) -> None:
    """Draw two shares per group in per cent, with their numbers."""
    for shift, values, colour in ((-0.2, before, OLD), (0.2, after, NEW)):
        places, heights = [place + shift for place in range(len(labels))], [100 * value for value in values]
        texts = [f"{height:.0f}" for height in heights]
        canvas.bars(axes, places, heights, texts, size=_TYPE - 0.5, width=0.36, color=colour)
    axes.set_xticks(range(len(labels)), list(labels))
    axes.tick_params(axis="x", length=0)
    canvas.no_height(axes)


def histogram(axes: Axes, width: float, before: Sequence[float], after: Sequence[float], unit: str) -> None:
    """Draw two distributions over the same bins, which start at 0 and are `width` wide, as shares of their rows."""
    edges = [width * number for number in range(len(after) + 1)]
    axes.bar(edges[:-1], after, width=width, align="edge", color=NEW, alpha=0.55, linewidth=0)
    axes.stairs(before, edges, color=OLD, linewidth=1.6)
    canvas.no_height(axes)
    axes.set_xlabel(unit, fontsize=_TYPE, color=INK)


def scatter(axes: Axes, x: Sequence[float], y: Sequence[float], good: Sequence[bool], names: tuple[str, str]) -> None:
    """Draw rank against rank, with filled marks for successes."""
    axes.plot([0, 100], [0, 100], color=GRID, linewidth=1.0)
    for success, face, line in ((False, "none", BAD), (True, NEW, "none")):
        chosen = [place for place, is_good in enumerate(good) if is_good == success]
        across, up = ([values[place] for place in chosen] for values in (x, y))
        axes.scatter(across, up, s=11, linewidths=0.9, facecolors=face, edgecolors=line, alpha=0.75)
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.set_xlabel(names[0], fontsize=_TYPE, color=INK)
    axes.set_ylabel(names[1], fontsize=_TYPE, color=INK)


def reliability(axes: Axes, bins: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> None:
    """Draw the share of successes by score, in bins of equal counts."""
    for found, colour, mark in ((others, OLD, "D"), (bins, NEW, "o")):
        scores, shares = zip(*found, strict=True)
        axes.plot(scores, [100 * share for share in shares], color=colour, marker=mark, markersize=4)
    axes.set_ylim(-3, 103)
    axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_xlabel("score", fontsize=_TYPE, color=INK)
    axes.set_ylabel("success, %", fontsize=_TYPE, color=INK)
