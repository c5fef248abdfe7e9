"""How far worthless policies lie below the teacher, and on how many prompts they are paid more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rc1_lib.errors import RC1Error
from rc1_lib.reward.plots.canvas import BAD, INK, NEW, SMALL, canvas, legend, plain, sentence, write_png

Paid = tuple[float | None, float | None, float | None, float | None]
"""A policy's margin, its interval's ends, and the share of prompts on which it is paid more; None: there is none."""


def undeserved(path: Path, policies: Mapping[str, Paid], *, least: float, caption: str = "") -> None:
    """Draw a line a policy, the nearest to the teacher on top.

    Args:
        path: of the PNG.
        policies: name -> its figures.
        least: by how much every policy has to lie below the teacher, drawn as a line.
        caption: what was played, n among it.

    Raises:
        RC1Error: when there is no policy.
    """
    if not policies:
        raise RC1Error("there are no policies to draw: expected one or more")
    order = sorted(policies.items(), key=lambda item: float("inf") if item[1][0] is None else item[1][0])
    table = np.array([[np.nan if value is None else value for value in row] for _, row in order], np.float64)
    margin, low, high, above = table.T
    place = np.arange(len(order), dtype=np.float64)
    figure = canvas(
        "Worthless policies below the teacher",
        sentence(
            "Dots: by how much the teacher's reward is higher, with its interval. Right: prompts where the policy's is",
            caption,
        ),
        height=2.1 + 0.34 * len(order),
        legend_row=True,
    )
    axes = figure.subplots()
    axes.axvline(least, color=BAD, linestyle="--", linewidth=1.4, label=f"wanted at least {least:g}")
    axes.hlines(place, low, high, color=NEW, linewidth=3.0, alpha=0.55)
    axes.plot(margin, place, linestyle="none", marker="o", markersize=8, color=NEW, label="judged part alone")
    right = float(np.nanmax([least, *table[:, :3].ravel()])) * 1.04
    left = float(np.nanmin([0.0, *table[:, :3].ravel()]))
    axes.set(xlim=(left - 0.03, right), ylim=(len(order) - 0.4, -0.6))
    plain(axes, x="teacher's reward less the policy's")
    axes.set_yticks(place, [name for name, _ in order])
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.grid(False, axis="y")
    shares = axes.secondary_yaxis("right")
    shares.set_yticks(place, ["none" if np.isnan(share) else f"{100 * share:.0f} %" for share in above])
    shares.tick_params(labelsize=SMALL, colors=INK, length=0)
    shares.spines["right"].set_visible(False)
    legend(figure, axes)
    write_png(path, figure)
