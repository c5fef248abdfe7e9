"""Pictures over days: values with their thresholds, and verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rc1_lib.release.report.charts import GRID, named
from rc1_lib.reward.plots.canvas import BAD, NEW, OLD, QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 28
"""Characters of a name that leave room for what it names."""


@dataclass(frozen=True, slots=True)
class Points:
    """Values over days, each as long as `days`; None where there is none.

    Attributes:
        days: when, in days.
        labels: a few of them, by where they stand.
        values: of each.
        intervals: of each value.
        bounds: the thresholds of each.
        red: whether it stands for a gate that was red.
        trend: at its first and its last value; None where none is told.
    """

    days: Sequence[float]
    labels: Sequence[tuple[float, str]]
    values: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None] = ()
    bounds: Sequence[Sequence[float]] = ()
    red: Sequence[bool] = ()
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
        for day, height, red in zip(points.days, heights, points.red, strict=False):
            if red and math.isnan(height):
                axes.plot([day], [0.04], marker="X", markersize=7, color=BAD, transform=axes.get_xaxis_transform())
            elif red:
                axes.plot([day], [height], marker="X", markersize=7, color=BAD)
        if points.trend is not None:
            axes.plot(*zip(*points.trend, strict=True), color=OLD, linewidth=2.2, alpha=0.6)
    _dated(axes, series[0])
    axes.grid(True, axis="y", color=GRID, linewidth=0.7)
    axes.locator_params(axis="y", nbins=4)


def verdicts(axes: Axes, names: Sequence[str], points: Points, rows: Sequence[Sequence[bool | None]]) -> None:
    """A line a name, a mark a day: a dot where it was well, a cross where it was red, a dash where nothing was said."""
    kinds: tuple[tuple[bool | None, str, str], ...] = ((True, NEW, "o"), (False, BAD, "X"), (None, QUIET, "_"))
    for place, row in enumerate(rows):
        for kind, colour, mark in kinds:
            days = [day for day, found in zip(points.days, row, strict=True) if found is kind]
            axes.plot(days, [place] * len(days), linestyle="none", marker=mark, markersize=4.5, color=colour)
    named(axes, [_short(name) for name in names])
    axes.grid(False)
    _dated(axes, points)


def _dated(axes: Axes, points: Points) -> None:
    axes.set_xticks([day for day, _ in points.labels], [words for _, words in points.labels])
    room = 0.04 * (points.days[-1] - points.days[0]) or 0.5
    axes.set_xlim(points.days[0] - room, points.days[-1] + room)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
