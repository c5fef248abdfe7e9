"""What the better half is like, by old score and by new reward, for every group of dialogues."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rc1_lib.errors import RC1Error
from rc1_lib.reward.plots.canvas import (
    INK,
    NEW,
    NORMAL,
    NOT_KNOWN,
    OLD,
    SMALL,
    canvas,
    known,
    legend,
    plain,
    sentence,
    write_png,
)

_PANELS = (
    ("success", "success", True),
    ("overclar_rate", "asks where nothing is missing", True),
    ("avg_turns", "turns, mean", False),
)
_SIDES = (("old", "by old score", OLD), ("new", "by new reward", NEW))


def by_bucket(
    path: Path,
    split: Mapping[str, Mapping[str, float | None]],
    *,
    title: str = "The better half by old score and by new reward, per difficulty",
    caption: str = "",
) -> None:
    """Draw success, needless asking and turns of the half that either score puts on top, a pair of bars a group.

    Args:
        path: of the PNG.
        split: group -> `n`, and `success_*`, `overclar_rate_*` (shares) and `avg_turns_*` for `old` and `new`. What is
            None or NaN is said to be none, not drawn as 0.
        title: what the groups are.
        caption: added to what is said of n.

    Raises:
        RC1Error: when there is no group.
    """
    if not split:
        raise RC1Error("there is no group of dialogues to draw: expected at least one")
    total = sum(int(found["n"] or 0) for found in split.values())
    figure = canvas(
        title,
        sentence(
            f"n = {total:,} dialogues. The n of a group counts all of it; the bars are about its better half", caption
        ),
        legend_row=True,
    )
    place = np.arange(len(split), dtype=np.float64)
    for axes, (name, words, is_share) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
        top = 0.0
        for offset, (side, label, colour) in zip((-0.21, 0.21), _SIDES, strict=True):
            values = [known(found[f"{name}_{side}"]) for found in split.values()]
            heights = [(100.0 if is_share else 1.0) * (value or 0.0) for value in values]
            top = max(top, *heights)
            axes.bar(place + offset, heights, width=0.4, color=colour, label=label)
            for x, value, height in zip(place + offset, values, heights, strict=True):
                text = NOT_KNOWN if value is None else f"{height:.0f}" if is_share else f"{height:.1f}"
                axes.annotate(
                    text, (x, height), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=SMALL, color=INK
                )
        plain(axes)
        axes.set_title(f"{words}{', %' if is_share else ''}", fontsize=NORMAL, color=INK)
        # Shares stand on one scale: a fifth of needless asking must not look like full success.
        axes.set_ylim(0, 112.0 if is_share else 1.12 * top if top > 0 else 1.0)
        axes.set_xticks(place, [f"{group}\nn = {int(found['n'] or 0):,}" for group, found in split.items()])
        axes.grid(False)
        axes.tick_params(axis="y", labelleft=False, length=0)
        axes.spines["left"].set_visible(False)
    legend(figure, figure.axes[0])
    write_png(path, figure)
