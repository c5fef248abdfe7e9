"""What all plots share: colours, title and caption, axes, bars, and output as PNG.

Only figure objects are used, never pyplot, whose current figure is shared by all threads. Matplotlib is imported when
the first plot is drawn, so that modules which may plot are fast to import.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rc1_lib.workspace.artifacts import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OLD, NEW, BAD, QUIET, INK = "#E69F00", "#0072B2", "#D55E00", "#8C8C8C", "#262626"
"""Okabe and Ito's palette, which readers with any kind of colour vision can distinguish; shapes differ as well."""
GRID = "#E4E4E4"
SMALL, NORMAL, LARGE = 10.5, 12.0, 14.5
NOT_KNOWN = "none"
_DPI = 100
_LINE = 0.2
"""Height of a line of the caption, in inches."""
_drawing = Lock()
"""Held while rendering a figure: all threads share matplotlib's settings, text layout and font caches."""


def canvas(title: str, caption: str, *, height: float = 5.6, legend_row: bool = False) -> Figure:
    """Return an empty figure 900 pixels wide, with a title above and a caption below the plot area.

    Args:
        caption: what the reader must know, including n; it is wrapped here.
        height: height in inches (100 pixels each), without the caption's second and later lines.
        legend_row: whether to leave a row below the title for `legend`.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    lines = textwrap.wrap(caption, 104) or [""]
    height += _LINE * (len(lines) - 1)
    foot = (0.22 + _LINE * len(lines)) / height
    head = (0.82 if legend_row else 0.5) / height
    between = ConstrainedLayoutEngine(rect=(0.012, foot, 0.976, 1.0 - head - foot))
    figure = Figure(figsize=(9.0, height), dpi=_DPI, facecolor="white", layout=between)
    figure.text(0.02, 1.0 - 0.12 / height, title, fontsize=LARGE, color=INK, weight="bold", va="top")
    figure.text(0.02, 0.1 / height, "\n".join(lines), fontsize=SMALL, color="#4D4D4D", va="bottom", linespacing=1.3)
    return figure


def legend(figure: Figure, axes: Axes) -> None:
    """Put the legend of `axes` into the row that `canvas` left for it."""
    handles, labels = axes.get_legend_handles_labels()
    top = 1.0 - 0.38 / float(figure.get_figheight())
    figure.legend(
        handles, labels, loc="upper left", bbox_to_anchor=(0.008, top), ncols=len(labels), fontsize=SMALL, frameon=False
    )


def plain(axes: Axes, *, x: str = "", y: str = "") -> None:
    """Style `axes` with labels, a faint grid and no frame at the top and right."""
    axes.set_xlabel(x, fontsize=NORMAL, color=INK)
    axes.set_ylabel(y, fontsize=NORMAL, color=INK)
    axes.tick_params(labelsize=SMALL, colors=INK, length=3)
    axes.grid(True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(QUIET)


def no_height(axes: Axes) -> None:
    """Hide the vertical axis of a plot whose heights are labelled with numbers."""
    axes.grid(False)
    axes.tick_params(axis="y", labelleft=False, length=0)
    axes.spines["left"].set_visible(False)


def bars(
    axes: Axes,
    places: Sequence[float],
    heights: Sequence[float],
    texts: Sequence[str],
    tops: Sequence[float] | None = None,
    size: float = SMALL,
    **look: Any,
) -> None:
    """Draw bars with a text above each; `tops` is where the text goes if something reaches higher than the bar."""
    axes.bar(places, heights, **look)
    for place, top, text in zip(places, tops or heights, texts, strict=True):
        axes.annotate(
            text, (place, top), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=size, color=INK
        )


def known(value: float | None) -> float | None:
    """Return the value, or None if it is undefined (None or NaN)."""
    return None if value is None or math.isnan(value) else value


def sentence(*parts: str) -> str:
    """Join the non-empty parts, each with a full stop."""
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


def write_png(path: Path, figure: Figure) -> None:
    """Write the figure atomically, without date or version, so that equal figures give equal bytes.

    Raises:
        RC1Error: when the file's folder cannot be created.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn = io.BytesIO()
    with _drawing:
        # Rendered by the canvas itself, since `savefig` would first draw the whole figure for nothing.
        FigureCanvasAgg(figure).print_png(drawn, metadata={"Software": None})  # type: ignore[no-untyped-call]
    with atomic_write(path) as stream:
        stream.write(drawn.getvalue())
