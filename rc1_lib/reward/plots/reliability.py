"""Reliability: is a dialogue with a higher score more often a success?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from rc1_lib.errors import RC1Error
from rc1_lib.reward.plots.canvas import INK, NEW, NORMAL, OLD, QUIET, canvas, legend, plain, sentence, write_png

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
        path: of the PNG.
        frame: a row a dialogue; a row on which a score or the outcome is null or NaN is left out and counted.
        scores: label -> column of scores, at most four of them.
        outcome: the column with the success, boolean or in [0, 1].
        bins: how many bins of (nearly) equal counts; dialogues with the same score stay in one bin.
        confidence: of the Jeffreys intervals.
        caption: added to what is said of n.

    Raises:
        RC1Error: when no row holds every score and the outcome, or there are more scores than looks for them.
    """
    if not 0 < len(scores) <= len(_LOOKS):
        raise RC1Error(f"the reliability plot shows 1 to {len(_LOOKS)} scores, found {len(scores)}: draw fewer")
    columns = [pl.col(name).cast(pl.Float64).fill_nan(None) for name in dict.fromkeys((*scores.values(), outcome))]
    known = frame.select(columns).drop_nulls()
    if not known.height:
        raise RC1Error(f"no dialogue holds {', '.join(scores.values())} and {outcome}: there is nothing to draw")
    left_out = frame.height - known.height
    shown = f"Up to {bins} bins of equal counts (equal scores stay together), Jeffreys {100 * confidence:g} % intervals"
    figure = canvas(
        "Reliability: share of successes by score",
        sentence(
            f"n = {known.height:,} dialogues" + (f", {left_out:,} unscored ones left out" if left_out else ""),
            shown,
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


def binned(frame: pl.DataFrame, score: str, outcome: str, *, bins: int, confidence: float) -> pl.DataFrame:
    """Bins of equal counts by a score: `score` (mean), `share` of successes, `low`, `high`, `count`, by rising score.

    The interval is Jeffreys' (equal tails of the beta posterior under the prior Beta(1/2, 1/2)), which reaches to 0
    where nothing succeeded and to 1 where all did (Brown, Cai and DasGupta 2001, Interval estimation for a binomial
    proportion).
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
