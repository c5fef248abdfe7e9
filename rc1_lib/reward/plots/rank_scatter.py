"""Ranks by the old score against ranks by the new reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from rc1_lib.errors import RC1Error
from rc1_lib.reward.plots.canvas import BAD, GOOD, QUIET, SMALL, canvas, plain, sentence, write_png

_AREA = 34.0
"""Of the mark of one dialogue, in square points, up to `_FEW` dialogues; with more it shrinks to leave room."""
_FEW = 600
_SHADE = "#009E73"


def rank_scatter(
    path: Path, old: ArrayLike, new: ArrayLike, success: ArrayLike, *, top: float = 0.10, caption: str = ""
) -> None:
    """Draw a mark a dialogue, solved and unsolved told apart, with the top of either ranking shaded.

    Equal scores share the mean of their ranks; dialogues that share both ranks are one mark, larger the more they are.

    Args:
        path: of the PNG.
        old: (n,), the old score.
        new: (n,), the new reward.
        success: (n,), whether the dialogue is a success.
        top: share of the dialogues that either ranking's shaded top holds.
        caption: the figures of agreement, in words.

    Raises:
        RC1Error: when the columns differ in length, or no dialogue holds both scores.
    """
    given = zip(_NAMES, (old, new, success), strict=True)
    columns = {name: np.asarray(values, dtype=np.float64) for name, values in given}
    lengths = {values.size for values in columns.values()}
    if len(lengths) != 1:
        found = ", ".join(f"{name} {values.size}" for name, values in columns.items())
        raise RC1Error(f"the rank scatter takes three columns of one length, found {found}")
    every = pl.DataFrame(columns)
    known = every.filter(pl.all_horizontal(pl.all().is_not_nan()))
    if not known.height:
        raise RC1Error("no dialogue holds an old score and a new reward: there are no ranks to draw")
    n, left_out = known.height, every.height - known.height
    figure = canvas(
        "Ranks: old score and new reward",
        sentence(
            f"n = {n:,} dialogues" + (f", {left_out:,} unscored ones left out" if left_out else ""),
            "Rank 1 is the highest score; equal scores share their mean rank",
            caption,
        ),
        height=7.6,
    )
    axes = figure.subplots()
    edge = top * n + 0.5
    axes.axvspan(0.5, edge, color=_SHADE, alpha=0.16, linewidth=0)
    axes.axhspan(0.5, edge, color=_SHADE, alpha=0.16, linewidth=0, label=f"top {100 * top:g} %")
    axes.plot((0.5, n + 0.5), (0.5, n + 0.5), color=QUIET, linestyle="--", linewidth=1.1, zorder=1, label="same rank")
    marks = _marks(known)
    room = min(1.0, _FEW / n)
    area = _AREA * room
    look: dict[str, Any] = {"alpha": 0.7, "edgecolor": "white", "linewidth": 0.5 * room}
    for solved, marker, colour, label in ((1.0, "o", GOOD, "solved"), (0.0, "X", BAD, "not solved")):
        shown = marks.filter(pl.col("success") == solved)
        areas = area * shown["count"].to_numpy().astype(np.float64)
        axes.scatter(shown["old"].to_numpy(), shown["new"].to_numpy(), s=areas, marker=marker, color=colour, **look)
        axes.scatter((), (), s=_AREA, marker=marker, color=colour, label=f"{label}: {shown['count'].sum():,}", **look)
    most = marks["count"][0]
    if most > 1:
        axes.scatter((), (), s=area * most, color=QUIET, label=f"{most:,} dialogues\nat one point", **look)
    margin = 0.015 * n
    limits = (n + 0.5 + margin, 0.5 - margin)  # the best at the right and at the top
    axes.set(xlim=limits, ylim=limits, aspect="equal", anchor="W")
    ticks = [1, *(int(tick) for tick in axes.get_xticks() if 1 < tick <= n and tick == int(tick))]
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    plain(axes, x="rank by the old score (best at the right)", y="rank by the new reward (best at the top)")
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize=SMALL, frameon=False, borderaxespad=0.0, labelspacing=1.0
    )
    write_png(path, figure)


_NAMES = ("old", "new", "success")


def _marks(known: pl.DataFrame) -> pl.DataFrame:
    """`old`, `new` (mean ranks, 1 the highest), `success` (0 or 1) and `count` of every point; largest first."""
    return (
        known.select(
            old=pl.col("old").rank("average", descending=True),
            new=pl.col("new").rank("average", descending=True),
            success=(pl.col("success") >= 0.5).cast(pl.Float64),
        )
        .group_by("old", "new", "success")
        .agg(count=pl.len())
        .sort("count", "old", "new", descending=[True, False, False])
    )
