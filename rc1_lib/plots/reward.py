"""Plots of the reward's evidence: each takes plain columns or values and writes the PNG `path`.

`caption` says on what the values were computed, including n. All raise `RC1Error` if there is nothing to draw.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from rc1_lib.errors import RC1Error
from rc1_lib.plots.canvas import (
    BAD,
    INK,
    NEW,
    NORMAL,
    NOT_KNOWN,
    OLD,
    QUIET,
    SMALL,
    bars,
    canvas,
    known,
    legend,
    no_height,
    plain,
    sentence,
    write_png,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Weighed = tuple[float, float, float, float | None, float | None]
"""Old, equal and calibrated weight of a dimension, and the calibrated one's interval, None or NaN if it has none."""


def weights(path: Path, dimensions: Mapping[str, Weighed], *, cap: float, caption: str = "") -> None:
    """Draw one line per dimension, in the given order, and the largest allowed weight, `cap`."""
    if not dimensions:
        raise RC1Error("there are no weights to draw: expected one for each dimension")
    old, equal, calibrated, low, high = table = _columns(dimensions.values())
    figure = canvas(
        "Weights of the dimensions",
        sentence("Dots: calibrated weights with bootstrap intervals", caption),
        height=2.1 + 0.42 * len(dimensions),
        legend_row=True,
    )
    names, words = list(dimensions), [f"{value:.3f}" for value in calibrated]
    axes = _spans(figure, names, (calibrated, low, high), "calibrated", words, (cap, f"cap {cap:g}"))
    place = range(len(names))
    axes.plot(old, place, linestyle="none", marker="D", ms=8, mfc="none", mec=OLD, mew=2, label="old")
    axes.plot(equal, place, linestyle="none", marker="|", ms=15, mew=1.8, color=QUIET, label="equal")
    right = float(np.nanmax([cap, *table.ravel()])) * 1.04
    axes.set_xlim(-0.02 * right, right)
    axes.set_xlabel("weight (all sum to 1)")
    legend(figure, axes)
    write_png(path, figure)


def _columns(rows: Collection[Sequence[float | None]]) -> NDArray[np.float64]:
    """Transpose rows into an array of shape (columns, rows), with NaN for None."""
    return np.array([[np.nan if value is None else value for value in row] for row in rows], np.float64).T


def _spans(
    figure: Figure,
    names: Sequence[str],
    spans: Sequence[NDArray[np.float64]],
    label: str,
    words: Sequence[str],
    bound: tuple[float, str],
) -> Axes:
    """Draw one line per name, from the top: a dot on its interval (`spans`: value, low, high), with words at its right.

    `bound` is a vertical line and its label.
    """
    axes, place, (value, low, high) = figure.subplots(), range(len(names)), spans
    plain(axes)
    axes.axvline(bound[0], color=BAD, linestyle="--", linewidth=1.4, label=bound[1])
    axes.hlines(place, low, high, color=NEW, linewidth=3.0, alpha=0.55)
    axes.plot(value, place, linestyle="none", marker="o", markersize=8, color=NEW, label=label)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(place, names)
    axes.tick_params(axis="y", labelsize=SMALL + 0.5)
    axes.grid(False, axis="y")
    right = axes.secondary_yaxis("right")
    right.set_yticks(place, words)
    right.tick_params(labelsize=SMALL, colors=INK, length=0)
    right.spines["right"].set_visible(False)
    return axes


_LOOKS = ((OLD, "s"), (NEW, "o"), ("#009E73", "^"), ("#CC79A7", "D"))


def reliability(
    path: Path,
    frame: pl.DataFrame,
    scores: Mapping[str, str],
    *,
    outcome: str = "success",
    bins: int = 10,
    confidence: float = 0.95,
    caption: str = "",
) -> None:
    """Draw the share of successes against the mean score, per bin, with intervals and counts.

    Args:
        path: path of the PNG.
        frame: one row per dialogue; rows with a null or NaN score or outcome are left out and counted.
        scores: label -> column of scores, at most four.
        outcome: the column with the success, Boolean or in [0, 1].
        bins: number of bins, as in `binned`.
        confidence: confidence level of the Jeffreys intervals.
        caption: added after n.
    """
    if not 0 < len(scores) <= len(_LOOKS):
        raise RC1Error(f"the reliability plot shows 1 to {len(_LOOKS)} scores, found {len(scores)}: draw fewer")
    columns = [pl.col(name).cast(pl.Float64).fill_nan(None) for name in dict.fromkeys((*scores.values(), outcome))]
    known = frame.select(columns).drop_nulls()
    if not known.height:
        raise RC1Error(f"no dialogue has {', '.join(scores.values())} and {outcome}: there is nothing to draw")
    left_out = frame.height - known.height
    figure = canvas(
        "Reliability: share of successes by score",
        sentence(
            _counted(known.height, left_out),
            f"Up to {bins} bins of equal counts (equal scores together), Jeffreys {100 * confidence:g} % intervals",
            caption,
        ),
        height=5.6,
        legend_row=True,
    )
    panels = figure.subplots(2, len(scores), sharex=True, sharey="row", height_ratios=(4, 1), squeeze=False)
    mean = float(known[outcome].cast(pl.Float64).to_numpy().mean())
    ends = [0.0, 1.0]
    for (above, below), (label, column), (colour, marker) in zip(panels.T, scores.items(), _LOOKS, strict=False):
        score, share, low, high, count = binned(known, column, outcome, bins=bins, confidence=confidence).to_numpy().T
        ends += [float(score.min()), float(score.max())]
        above.plot((0, 1), (0, 1), color=QUIET, linestyle="--", linewidth=1.2, label="share of successes = score")
        above.axhline(mean, color=QUIET, linestyle=":", linewidth=1.4, label=f"success of all: {100 * mean:.1f} %")
        above.errorbar(
            score, share, yerr=(share - low, high - share), color=colour, ecolor=colour, marker=marker, markersize=7,
            linewidth=1.4, elinewidth=1.6, capsize=3, markeredgecolor="white", markeredgewidth=0.7,
        )  # fmt: skip
        above.set_title(label, fontsize=NORMAL, color=INK)
        below.vlines(score, 0, count, color=colour, linewidth=4.0, alpha=0.85)
        plain(above, y="share of successes" if above is panels[0, 0] else "")
        plain(below, x=f"mean {label} of the bin", y="dialogues" if below is panels[1, 0] else "")
    panels[0, 0].set(ylim=(-0.03, 1.03), xlim=(min(ends) - 0.02, max(ends) + 0.02))
    panels[1, 0].set_ylim(0, None)
    legend(figure, panels[0, 0])
    write_png(path, figure)


def _counted(n: int, left_out: int) -> str:
    return f"n = {n:,} dialogues" + (f", {left_out:,} unscored ones left out" if left_out else "")


def binned(frame: pl.DataFrame, score: str, outcome: str, *, bins: int, confidence: float) -> pl.DataFrame:
    """Group dialogues into bins of equal counts by a score.

    The columns are `score` (mean), `share` of successes, its interval `low` and `high`, and `count`, by rising score.
    The interval is Jeffreys': equal tails of the beta posterior under the prior Beta(1/2, 1/2), which is extended to 0
    if nothing succeeded and to 1 if everything did. Source: Brown, Cai and DasGupta, "Interval Estimation for a
    Binomial Proportion" (2001).
    """
    from scipy.special import betaincinv

    rank = pl.col(score).rank("average") - 0.5  # equal scores share a rank, and so a bin
    grouped = (
        frame.select(
            bin=(rank * bins / pl.len()).floor().cast(pl.Int64),
            score=pl.col(score).cast(pl.Float64),
            outcome=pl.col(outcome).cast(pl.Float64),
        )
        .group_by("bin")
        .agg(score=pl.col("score").mean(), share=pl.col("outcome").mean(), won=pl.col("outcome").sum(), count=pl.len())
        .sort("bin")
    )
    won, count = grouped["won"].to_numpy(), grouped["count"].to_numpy().astype(np.float64)
    tail = (1.0 - confidence) / 2.0
    low = np.where(won > 0, betaincinv(won + 0.5, count - won + 0.5, tail), 0.0)
    high = np.where(won < count, betaincinv(won + 0.5, count - won + 0.5, 1.0 - tail), 1.0)
    share = grouped["share"].to_numpy()
    return grouped.select(
        "score", "share", low=pl.Series(np.minimum(low, share)), high=pl.Series(np.maximum(high, share)), count="count"
    )


_PANELS = (
    ("success", "success", True),
    ("overclar_rate", "asks where nothing is missing", True),
    ("avg_turns", "turns, mean", False),
)
_SIDES = (("old", "by old score", OLD), ("new", "by new reward", NEW))


def by_bucket(path: Path, split: Mapping[str, Mapping[str, float | None]]) -> None:
    """Draw success, needless asking and turns of the better half by either score, one pair of bars per difficulty.

    Args:
        path: path of the PNG.
        split: difficulty -> `n`, and `success_*`, `overclar_rate_*` (shares) and `avg_turns_*` for `old` and `new`.
            None or NaN is labelled as undefined, not drawn as 0.
    """
    if not split:
        raise RC1Error("there is no group of dialogues to draw: expected at least one")
    total = sum(int(found["n"] or 0) for found in split.values())
    figure = canvas(
        "The better half by old score and by new reward, per difficulty",
        f"n = {total:,} dialogues. The n of a group counts all its dialogues; the bars show its better half.",
        legend_row=True,
    )
    place = range(len(split))
    for axes, (name, words, is_share) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
        top = 0.0
        for offset, (side, label, colour) in zip((-0.21, 0.21), _SIDES, strict=True):
            values = [known(found[f"{name}_{side}"]) for found in split.values()]
            heights = [(100.0 if is_share else 1.0) * (value or 0.0) for value in values]
            top = max(top, *heights)
            texts = [
                NOT_KNOWN if value is None else f"{height:.{0 if is_share else 1}f}"
                for value, height in zip(values, heights, strict=True)
            ]
            bars(axes, [middle + offset for middle in place], heights, texts, width=0.4, color=colour, label=label)
        plain(axes)
        axes.set_title(f"{words}{', %' if is_share else ''}", fontsize=NORMAL, color=INK)
        # All shares have the same scale, so that 20 % needless asking does not look like full success.
        axes.set_ylim(0, 112.0 if is_share else 1.12 * top if top > 0 else 1.0)
        axes.set_xticks(place, [f"{group}\nn = {int(found['n'] or 0):,}" for group, found in split.items()])
        no_height(axes)
    legend(figure, figure.axes[0])
    write_png(path, figure)


Paid = tuple[float | None, float | None, float | None, float | None]
"""A policy's margin, the ends of its interval, and the share of prompts on which it earns more; None if undefined."""


def undeserved(path: Path, policies: Mapping[str, Paid], *, least: float, caption: str = "") -> None:
    """Draw one line per adversarial policy, the closest to the expert on top, and the required margin, `least`."""
    if not policies:
        raise RC1Error("there are no policies to draw: expected at least one")
    order = sorted(policies.items(), key=lambda item: float("inf") if item[1][0] is None else item[1][0])
    *spans, above = _columns([row for _, row in order])
    figure = canvas(
        "Adversarial policies below the scripted expert",
        sentence(
            "Dots: by how much the expert earns more, with intervals. Right: prompts on which the policy earns more",
            caption,
        ),
        height=2.1 + 0.34 * len(order),
        legend_row=True,
    )
    words = [NOT_KNOWN if np.isnan(share) else f"{100 * share:.0f} %" for share in above]
    bound = (least, f"expected at least {least:g}")
    axes = _spans(figure, [name for name, _ in order], spans, "what training pays", words, bound)
    known_ends = [0.0, least, *np.ravel(spans)]
    axes.set_xlim(float(np.nanmin(known_ends)) - 0.03, float(np.nanmax(known_ends)) * 1.04)
    axes.set_xlabel("scripted expert's reward minus the policy's")
    legend(figure, axes)
    write_png(path, figure)
