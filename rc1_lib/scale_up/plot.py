"""Every measure of a scale-up against the pool's size."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rc1_lib.plots.canvas import BAD, INK, NEW, QUIET, SMALL, canvas, plain, sentence, write_png
from rc1_lib.records import Check
from rc1_lib.scale_up.looks import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Measured = Sequence[tuple[Look, Check]]
_COLUMNS = 3
_WIDE = 30
"""How many characters of a title fit above its panel."""


def measures(path: Path, found: Mapping[str, Measured], caption: str) -> None:
    """Draw one panel for each measure that is a number with a threshold.

    Args:
        path: of the PNG.
        found: measure -> what each look found.
        caption: the result in words.
    """
    shown = {name: values for name, values in found.items() if _is_drawn(values)}
    lines = max(1, -(-len(shown) // _COLUMNS))
    figure = canvas(
        "Every measure against the pool's size",
        sentence(
            "Dots: after a size was reached; rings: checked again before the next. Dashed: the threshold", caption
        ),
        height=1.2 + 2.0 * lines,
    )
    grid = figure.subplots(lines, _COLUMNS, squeeze=False).ravel()
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    for axes, (name, values) in zip(grid, shown.items(), strict=False):
        _panel(axes, name, values)
    write_png(path, figure)


def _is_drawn(values: Measured) -> bool:
    return all(isinstance(check.threshold, int | float) and check.op in ("<=", ">=") for _, check in values)


def _panel(axes: Axes, name: str, values: Measured) -> None:
    sizes = [look.size for look, _ in values]
    figures = [float(check.value) if isinstance(check.value, int | float) else math.nan for _, check in values]
    plain(axes)
    axes.axhline(float(values[-1][1].threshold), color=QUIET, linestyle="--", linewidth=1.2)  # type: ignore[arg-type]
    reached = [place for place, (look, _) in enumerate(values) if not look.again]
    axes.plot([sizes[one] for one in reached], [figures[one] for one in reached], color=NEW, linewidth=1.5)
    for size, figure, (look, check) in zip(sizes, figures, values, strict=True):
        colour = NEW if check.passed else BAD
        axes.plot(
            size, figure, marker="o", markersize=9 if look.again else 5, markeredgecolor=colour,
            markerfacecolor="none" if look.again else colour, linestyle="none",
        )  # fmt: skip
    ticks = sorted(set(sizes))
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks], minor=False)
    axes.minorticks_off()
    axes.set_xlim(min(ticks) / 1.5, max(ticks) * 1.5)
    gate, _, figure_of = name.partition(": ")
    axes.set_title("\n".join([gate, *textwrap.wrap(figure_of, _WIDE)]), fontsize=SMALL, color=INK)
    axes.locator_params(axis="y", nbins=4)
