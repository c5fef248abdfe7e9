"""The judge probe: a few dialogues are asked live, and every sample has to come back with scores."""

from __future__ import annotations

import polars as pl

from rc1_lib.checks import above, at_least, equal, info, number, offenders
from rc1_lib.config.thresholds import ProbeGate
from rc1_lib.records import Check, GateResult
from rc1_lib.scoring.noise import long_scores
from rc1_lib.scoring.usage import SCORINGS, AttemptOutcome

_OK = pl.col("outcome") == AttemptOutcome.OK
_HIT = pl.col("outcome") == AttemptOutcome.HIT


def probe_gate(lines: pl.DataFrame, *, provider: str, asked: int, samples: int, thresholds: ProbeGate) -> GateResult:
    """Judge that the provider really answered, and answered with scores.

    Args:
        lines: the usage log's lines of the probe's own run, columns of `LOG_SCHEMA`. The probe never reads the cache.
        provider: the judge's name.
        asked: dialogues that were asked, all different.
        samples: scores wanted of each.
        thresholds: how many dialogues, and whether somebody has to have been billed.
    """
    lines = lines.sort("seq")
    answered = lines.filter(_OK)
    wanted = answered.filter(pl.col("sample").is_between(0, samples - 1))
    full = wanted.group_by("dialogue").agg(held=pl.col("sample").n_unique()).filter(pl.col("held") == samples)
    failed = _failed(lines)
    scores = long_scores(answered)["score"]
    outside = int((~scores.is_between(0.0, 1.0) | scores.is_nan()).sum()) + answered["scores"].null_count()
    shortest = answered.select(pl.col("latency_ms").nan_min()).item()
    checks = [
        equal(
            "dialogues asked", asked, thresholds.n,
            "the shadow set holds fewer dialogues than gates.probe.n: materialise more of it",
        ),
        equal(
            "dialogues with every sample scored", full.height, asked,
            _why(failed, asked * samples - wanted.select("dialogue", "sample").n_unique()),
        ),
        equal(
            "replays from the cache", lines.filter(_HIT).height, 0,
            "a probe that reads the cache asks nobody: it has to bypass it",
        ),
        equal(
            "calls of another provider", lines.filter(pl.col("provider").ne_missing(provider)).height, 0,
            f"judge.provider is '{provider}', and these lines are another's: find out who wrote them",
        ),
        above(
            "shortest latency, ms", number(shortest), 0.0,
            "an answer takes time: no time at all is a stand-in's" if answered.height else "nobody answered",
        ),
        equal(
            "scores outside [0, 1]", outside, 0,
            "the judge let a reply through that its schema forbids: correct the reading of replies",
        ),
        *_billing(lines, answered, provider, thresholds),
        *_figures(lines),
    ]  # fmt: skip
    listed = failed.select(id="dialogue", sample="sample", outcome="outcome", detail="detail")
    return GateResult("judge_probe", tuple(checks), offenders=offenders(listed, "not scored"))


def _failed(lines: pl.DataFrame) -> pl.DataFrame:
    """The last line of each sample that was asked for and has no score."""
    last = lines.group_by("dialogue", "sample", maintain_order=True).agg(
        scored=_OK.any(), outcome=pl.col("outcome").last(), detail=pl.col("detail").last(), seq=pl.col("seq").last()
    )
    return last.filter(~pl.col("scored")).sort("seq")


def _why(failed: pl.DataFrame, missing: int) -> str:
    """The most frequent reason, with what was said the last time it was given."""
    if not missing:
        return ""
    if not failed.height:
        return f"{missing} samples were never asked for: did the run stop at its budget (judge.budget)?"
    reasons = failed.group_by("outcome").agg(times=pl.len(), seq=pl.col("seq").last(), detail=pl.col("detail").last())
    outcome, times, _, detail = reasons.sort("times", "seq", descending=True).row(0)
    said = f": {detail}" if detail else ""
    return f"{missing} of the samples have no score; {times} ended as '{outcome}'{said}"


def _billing(lines: pl.DataFrame, answered: pl.DataFrame, provider: str, thresholds: ProbeGate) -> list[Check]:
    billed = int(lines.filter(pl.col("outcome") != AttemptOutcome.HIT)["billable"].sum())
    if not thresholds.require_billed:
        return [info("billed calls", billed)]
    free = answered.filter(~pl.col("billable").fill_null(False)).height
    advice = f"'{provider}' reported no usage: ask a live provider that bills; the local rubric bills nobody"
    return [at_least("billed calls", billed, 1, advice), equal("scored calls without a bill", free, 0, advice)]


def _figures(lines: pl.DataFrame) -> list[Check]:
    models = lines.filter(pl.col("outcome").is_in(SCORINGS))["model"].unique().sort()
    return [
        info("attempts", lines.height),
        info("cost, USD", float(lines["cost_usd"].sum())),
        info("attempts of unknown cost", lines["cost_usd"].null_count()),
        info("tokens in", int(lines["tokens_in"].sum())),
        info("tokens out", int(lines["tokens_out"].sum())),
        info("model versions", ", ".join(model or "(unnamed)" for model in models)),
    ]
