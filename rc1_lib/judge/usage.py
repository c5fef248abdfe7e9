"""Aggregate lines of the usage log."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from rc1_lib.judge.calls import ANSWERED, SCORINGS, AttemptOutcome
from rc1_lib.judge.noise import long_scores
from rc1_lib.judge.results import medians_and_variances

_LATE = 0.95


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """Figures of some lines of the usage log; None if there is no data for a figure.

    Attributes:
        scores: number of scores, fresh or replayed.
        calls: attempts at the provider, without replays.
        hit_rate: the replays' share of the scores.
        share_429: 429s as a share of answered attempts and 429s.
        latency_ms_median: of the answered attempts.
        latency_ms_p95: their 95th percentile (nearest rank).
        usd: sum of the attempts' known costs.
        cost_unknown: attempts that may have been billed at unknown cost.
        unstable: of the dialogues with two or more samples, the share whose samples disagree too much on a dimension.
    """

    scores: int
    calls: int
    hit_rate: float | None
    share_429: float | None
    latency_ms_median: float | None
    latency_ms_p95: float | None
    usd: float | None
    cost_unknown: int | None
    unstable: float | None


def usage_figures(lines: pl.DataFrame, max_variance: float) -> UsageFigures:
    """Compute the figures of lines of the usage log.

    Args:
        lines: with the columns of `LOG_SCHEMA`.
        max_variance: `gates.stability.max_variance`: above it samples of one dialogue disagree too much.
    """
    hits = lines.filter(pl.col("outcome") == AttemptOutcome.HIT)
    attempts = lines.filter(pl.col("outcome") != AttemptOutcome.HIT)
    scored = lines.filter(pl.col("outcome").is_in(SCORINGS))
    answered = attempts.filter(pl.col("outcome").is_in(ANSWERED))
    refused = int((attempts["outcome"] == AttemptOutcome.RATE_LIMITED).sum())
    latencies = answered["latency_ms"].sort().to_list()
    return UsageFigures(
        scores=scored.height,
        calls=attempts.height,
        hit_rate=_share(hits.height, scored.height),
        share_429=_share(refused, answered.height + refused),
        latency_ms_median=float(pl.Series(latencies).median()) if latencies else None,  # type: ignore[arg-type]
        latency_ms_p95=latencies[math.ceil(_LATE * len(latencies)) - 1] if latencies else None,
        usd=float(attempts["cost_usd"].sum()) if attempts.height else None,
        cost_unknown=attempts["cost_usd"].null_count() if attempts.height else None,
        unstable=_unstable(scored, max_variance),
    )


def _unstable(scored: pl.DataFrame, max_variance: float) -> float | None:
    """Return the share of unstable dialogues. A dialogue counts once per run: samples of two runs are never pooled."""
    asking = scored.with_columns(dialogue=pl.col("run_id") + pl.lit(" ") + pl.col("dialogue"))
    spread = medians_and_variances(long_scores(asking)).filter(pl.col("samples") > 1)
    wild = spread.filter(pl.col("variance") > max_variance)
    return _share(wild["dialogue"].n_unique(), spread["dialogue"].n_unique())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
