"""The usage log's line (one attempt at a provider, or one score replayed from the cache), and figures of many lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from rc1_lib.judge.calls import ANSWERED, SCORINGS, AttemptOutcome
from rc1_lib.judge.noise import long_scores, medians_and_variances


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the usage log.

    Attributes:
        attempt_id: unique to this attempt; the provider was sent it as `X-Client-Request-Id`.
        run_id: the run of the judge that made it.
        ask_key: what was asked: dialogue, instructions, provider, settings and sample index, as a hash.
        dialogue: SHA-256 of the dialogue.
        sample: which of the K samples, from 0.
        attempt: which attempt at it in this run, from 1.
        provider: the judge's name.
        spec: version of the instructions.
        model_asked: the model that was asked for.
        model: the version that the provider says answered; empty when nobody answered.
        temperature: of the sampling; None where it was left to the model.
        outcome: how it ended.
        started: when, seconds since 1970, UTC.
        latency_ms: from the request to the reply's last byte; for a hit, the look-up.
        status: HTTP status, where there was a response.
        request_id: the provider's own id of the reply; of a hit, that of the reply it replays.
        tokens_in: as the provider counts; 0 for hits and where no usage was reported.
        tokens_out: the same.
        cost_usd: at the configured prices; 0 for hits, refused requests and what never left this machine, None where
            nobody can know: a timeout, or no prices.
        billable: whether the provider reported usage for this very attempt.
        reply_sha256: of the reply's text; empty when there is none. A hit repeats that of the reply it replays.
        scores: by dimension, where the reply holds scores.
        detail: what went wrong, with secrets masked.
    """

    attempt_id: str
    run_id: str
    ask_key: str
    dialogue: str
    sample: int
    attempt: int
    provider: str
    spec: str
    model_asked: str
    model: str
    temperature: float | None
    outcome: AttemptOutcome
    started: float
    latency_ms: float
    status: int | None
    request_id: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    billable: bool
    reply_sha256: str
    scores: Mapping[str, float] | None
    detail: str


LOG_SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "seq": pl.Int64,
    "attempt_id": pl.String,
    "run_id": pl.String,
    "ask_key": pl.String,
    "dialogue": pl.String,
    "sample": pl.Int64,
    "attempt": pl.Int64,
    "provider": pl.String,
    "spec": pl.String,
    "model_asked": pl.String,
    "model": pl.String,
    "temperature": pl.Float64,
    "outcome": pl.String,
    "started": pl.Float64,
    "latency_ms": pl.Float64,
    "status": pl.Int64,
    "request_id": pl.String,
    "tokens_in": pl.Int64,
    "tokens_out": pl.Int64,
    "cost_usd": pl.Float64,
    "billable": pl.Boolean,
    "reply_sha256": pl.String,
    "scores": pl.String,
    "detail": pl.String,
}
"""The log as a table: one row a line, in the order of writing (`seq` from 1); `scores` is JSON text or null."""


_LATE = 0.95


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """Figures of some lines of the usage log; None where there was nothing to count them from.

    Attributes:
        scores: scores that were given, asked for or replayed.
        calls: attempts at the provider; replays are none.
        hit_rate: the replays' share of the scores.
        share_429: of the attempts that were answered or refused with a 429, the latter's share.
        latency_ms_median: of the attempts that were answered.
        latency_ms_p95: their 95th percentile (nearest rank).
        usd: what the attempts cost, as far as anybody knows.
        cost_unknown: attempts that may have been billed, nobody knows how much for.
        unstable: of the dialogues with two samples or more, the share whose samples disagree too far on a dimension.
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
    """Count lines of the usage log.

    Args:
        lines: with the columns of `LOG_SCHEMA`.
        max_variance: `gates.stability.max_variance`: beyond it samples of one dialogue disagree too far.
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
    """A dialogue that was asked about twice counts twice: samples of different askings are never laid together."""
    asking = scored.with_columns(dialogue=pl.col("run_id") + pl.lit(" ") + pl.col("dialogue"))
    spread = medians_and_variances(long_scores(asking)).filter(pl.col("samples") > 1)
    wild = spread.filter(pl.col("variance") > max_variance)
    return _share(wild["dialogue"].n_unique(), spread["dialogue"].n_unique())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
