"""The calibrated weights with their intervals, beside the old and the equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from rc1_lib.errors import RC1Error
from rc1_lib.reward.plots.canvas import BAD, INK, NEW, OLD, QUIET, SMALL, canvas, legend, plain, sentence, write_png

Weighed = tuple[float, float, float, float | None, float | None]
"""A dimension's old, equal and calibrated weight, and the calibrated one's interval; None or NaN: there is none."""


def weights(path: Path, dimensions: Mapping[str, Weighed], *, cap: float, caption: str = "") -> None:
    """Draw a line a dimension, in the order given.

    Args:
        path: of the PNG.
        dimensions: name -> its weights.
        cap: the largest weight allowed, drawn as a line.
        caption: what the weights were calibrated on, n among it.

    Raises:
        RC1Error: when there is no dimension.
    """
    if not dimensions:
        raise RC1Error("there are no weights to draw: expected one for each dimension")
    table = np.array([[np.nan if value is None else value for value in row] for row in dimensions.values()], np.float64)
    old, equal, calibrated, low, high = table.T
    place = np.arange(len(dimensions), dtype=np.float64)
    figure = canvas(
        "Weights of the dimensions",
        sentence("Dots: calibrated weights, with the bootstrap's interval", caption),
        height=2.1 + 0.42 * len(dimensions),
        legend_row=True,
    )
    axes = figure.subplots()
    axes.axvline(cap, color=BAD, linestyle="--", linewidth=1.4, label=f"cap {cap:g}")
    axes.hlines(place, low, high, color=NEW, linewidth=3.2, alpha=0.55)
    axes.plot(calibrated, place, linestyle="none", marker="o", markersize=9, color=NEW, label="calibrated")
    axes.plot(
        old, place, linestyle="none", marker="D", markersize=8, markerfacecolor="none", markeredgecolor=OLD,
        markeredgewidth=2, label="old",
    )  # fmt: skip
    axes.plot(
        equal, place, linestyle="none", marker="|", markersize=15, markeredgewidth=1.8, color=QUIET, label="equal"
    )
    right = float(np.nanmax([cap, *table.ravel()])) * 1.04
    axes.set(xlim=(-0.02 * right, right), ylim=(len(dimensions) - 0.4, -0.6))
    plain(axes, x="weight (all of them sum to 1)")
    axes.set_yticks(place, list(dimensions))
    axes.tick_params(axis="y", labelsize=SMALL + 1)
    axes.grid(False, axis="y")
    margin = axes.secondary_yaxis("right")
    margin.set_yticks(place, [f"{value:.3f}" for value in calibrated])
    margin.tick_params(labelsize=SMALL, colors=INK, length=0)
    margin.spines["right"].set_visible(False)
    legend(figure, axes)
    write_png(path, figure)
