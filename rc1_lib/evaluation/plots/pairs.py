"""Pairs of bars with their intervals: a policy before and after, group by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rc1_lib.reward.plots.canvas import INK, NEW, NOT_KNOWN, OLD, SMALL, known, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _GAP = 0.38, 0.45
"""Of a bar, and between sections; pairs stand 1 apart."""
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two bars.

    Attributes:
        label: below them.
        before: `value`, `low`, `high`: shares in [0, 1]; None or NaN where undefined.
        after: the same.
    """

    label: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def draw_pairs(axes: Axes, sections: Sequence[Sequence[Pair]], names: tuple[str, str], y: str = "") -> None:
    """Draw the pairs on one scale from 0 to 100 %; what is undefined is said to be, not drawn as 0.

    Args:
        axes: to draw into.
        sections: of pairs from left to right, with a gap between sections.
        names: of the two policies, for the legend.
        y: what the axis says.
    """
    pairs = [pair for section in sections for pair in section]
    middles = [place + _GAP * number for place, number in enumerate(_numbers(sections))]
    for offset, side, name, colour in ((-_WIDTH / 2, "before", names[0], OLD), (_WIDTH / 2, "after", names[1], NEW)):
        found = [getattr(pair, side) for pair in pairs]
        heights = [100.0 * (known(one["value"]) or 0.0) for one in found]
        places = [middle + offset for middle in middles]
        axes.bar(places, heights, width=_WIDTH - 0.03, color=colour, label=f"{side} training ({name})")
        for place, one, height in zip(places, found, heights, strict=True):
            low, high = known(one["low"]), known(one["high"])
            top = height
            if low is not None and high is not None:
                axes.vlines(place, 100.0 * low, 100.0 * high, color=INK, linewidth=1.4)
                top = max(top, 100.0 * high)
            text = NOT_KNOWN if known(one["value"]) is None else f"{height:.0f}"
            axes.annotate(
                text, (place, top), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=SMALL, color=INK
            )
    plain(axes, y=y)
    axes.set(ylim=(0, 112.0), xlim=(-0.6, middles[-1] + 0.6))
    axes.set_xticks(middles, [pair.label for pair in pairs])
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")


def interval_caption(confidence: float) -> str:
    """What the lines are; number and sign stay on one line."""
    return f"Lines: {100 * confidence:g}{NO_BREAK}% bootstrap intervals over source questions"


def _numbers(sections: Sequence[Sequence[Pair]]) -> list[int]:
    return [number for number, section in enumerate(sections) for _ in section]
