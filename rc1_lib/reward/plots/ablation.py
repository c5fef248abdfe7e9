"""What the over-clarification penalty changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rc1_lib.reward.plots.canvas import (
    INK,
    NEW,
    NORMAL,
    NOT_KNOWN,
    QUIET,
    SMALL,
    canvas,
    known,
    plain,
    sentence,
    write_png,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARES = {
    "overclar_rate": "asks where\nnothing is missing",
    "ask_rate_where_needed": "asks where\nsomething is missing",
    "success": "success",
}
_TURNS = "avg_turns"
_CHANGES = {
    "overclar_rate": ("rate_drop_pct", -1.0, " % (relative)"),
    "success": ("success_drop_pp", -1.0, " pp"),
    _TURNS: ("turns_up", 1.0, " turns"),
}
"""Figure -> the difference that is told below it, the sign that makes a change of it, and its unit."""


def ablation(path: Path, figures: Mapping[str, Any], *, caption: str = "") -> None:
    """Draw four figures without and with the penalty, and write below each how it changes.

    Args:
        path: of the PNG.
        figures: `without` and `with`, each with `overclar_rate`, `ask_rate_where_needed`, `success` (shares) and
            `avg_turns`; `rate_drop_pct`, `success_drop_pp` and `turns_up`, each with `value`, `low` and `high`. What
            is None or NaN is said to be none, not drawn as 0.
        caption: what was compared, n among it.
    """
    figure = canvas(
        "The over-clarification penalty: what it changes",
        sentence("Below each pair: the change by the penalty and, in brackets, its paired bootstrap interval", caption),
        height=4.9,
    )
    titles = {**_SHARES, _TURNS: "turns, mean"}
    for axes, (name, title) in zip(figure.subplots(1, len(titles)), titles.items(), strict=True):
        without, with_ = (known(figures[side][name]) for side in ("without", "with"))
        _bars(axes, (without, with_), is_share=name in _SHARES)
        axes.set_title(title, fontsize=NORMAL, color=INK)
        if name in _CHANGES:
            difference, sign, unit = _CHANGES[name]
            shown = _change(figures[difference], sign, unit)
        else:
            shown = NOT_KNOWN if without is None or with_ is None else f"{_signed(100.0 * (with_ - without))} pp\n"
        axes.set_xlabel(shown, fontsize=SMALL, color=INK, labelpad=8, linespacing=1.4)
    write_png(path, figure)


def _bars(axes: Axes, pair: tuple[float | None, float | None], *, is_share: bool) -> None:
    heights = [0.0 if value is None else 100.0 * value if is_share else value for value in pair]
    axes.bar((0, 1), heights, width=0.68, color=("#BFBFBF", NEW), edgecolor=(QUIET, NEW))
    top = max(heights) if max(heights) > 0 else 1.0
    for place, (value, height) in enumerate(zip(pair, heights, strict=True)):
        text = NOT_KNOWN if value is None else f"{height:.1f} %" if is_share else f"{height:.2f}"
        axes.text(
            place,
            height + 0.02 * (100.0 if is_share else top),
            text,
            ha="center",
            va="bottom",
            fontsize=SMALL,
            color=INK,
        )
    plain(axes)
    axes.set(ylim=(0, 115.0 if is_share else 1.15 * top), xlim=(-0.6, 1.6))
    axes.set_xticks((0, 1), ("without", "with"))
    axes.tick_params(axis="y", labelleft=False, length=0)
    axes.grid(False)
    axes.spines["left"].set_visible(False)


def _change(found: Mapping[str, float | None], sign: float, unit: str) -> str:
    value, low, high = (known(found[name]) for name in ("value", "low", "high"))
    if value is None:
        return f"{NOT_KNOWN}\n"
    if low is None or high is None:
        return f"{_signed(sign * value)}{unit}\n[no interval]"
    ends = sorted((sign * low, sign * high))
    return f"{_signed(sign * value)}{unit}\n[{_signed(ends[0])} to {_signed(ends[1])}]"


def _signed(value: float) -> str:
    """Three digits and the sign, with the minus that is as wide as a plus; a change of nothing has none."""
    text = f"{value:+.3g}" if value else "0"
    return text.replace("-", "\N{MINUS SIGN}")
