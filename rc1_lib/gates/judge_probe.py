"""The judge probe: ask the live judge about a few dialogues; every sample must come back with scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from rc1_lib.checks import above, at_least, at_most, equal, info, number, offenders
from rc1_lib.config.thresholds import ProbeGate
from rc1_lib.evidence import Evidence
from rc1_lib.gates.anti_simulation import MAX_IDENTICAL
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.judge.calls import SCORINGS, AttemptOutcome
from rc1_lib.judge.judge import fresh_scores
from rc1_lib.judge.providers import LIVE
from rc1_lib.records import Check, GateResult, Message
from rc1_lib.run import Run

_OK = pl.col("outcome") == AttemptOutcome.OK


def probe_gate(lines: pl.DataFrame, *, provider: str, asked: int, samples: int, thresholds: ProbeGate) -> GateResult:
    """Check that the provider really answered, and with scores.

    Args:
        lines: the usage log's lines of the probe's own run, columns of `LOG_SCHEMA`. The probe never reads the cache.
        provider: the judge's name.
        asked: number of different dialogues that the judge was asked about.
        samples: scores wanted for each dialogue.
        thresholds: `gates.probe`.
    """
    lines = lines.sort("seq")
    answered = lines.filter(_OK)
    wanted = answered.filter(pl.col("sample").is_between(0, samples - 1))
    full = wanted.group_by("dialogue").agg(held=pl.col("sample").n_unique()).filter(pl.col("held") == samples)
    failed = _failed(lines)
    shortest = answered.select(pl.col("latency_ms").nan_min()).item()
    checks = [
        equal(
            "dialogues asked", asked, thresholds.n,
            "the shadow set has fewer dialogues than gates.probe.n: raise shadow.n, or lower gates.probe.n",
        ),
        equal(
            "dialogues with every sample scored", full.height, asked,
            _why(failed, asked * samples - wanted.select("dialogue", "sample").n_unique()),
        ),
        above(
            "shortest latency, ms", number(shortest), 0.0,
            "a real answer takes time: a stand-in replied" if answered.height else "no reply has scores",
        ),
        at_most(
            "model versions that answered", len(_versions(lines)), 1,
            f"{', '.join(_versions(lines))} answered in turn, and scores of two versions are not on one scale: name "
            "one version in judge.model, or ask a server that keeps to one (judge.base_url)",
        ),
        *_billing(lines, answered, provider, thresholds),
        *_figures(lines),
    ]  # fmt: skip
    listed = failed.select(id="dialogue", sample="sample", outcome="outcome", detail="detail")
    return GateResult("judge_probe", tuple(checks), offenders=offenders(listed, "not scored"))


def _failed(lines: pl.DataFrame) -> pl.DataFrame:
    """Return the last line of each requested sample without a score."""
    last = lines.group_by("dialogue", "sample", maintain_order=True).agg(
        scored=_OK.any(), outcome=pl.col("outcome").last(), detail=pl.col("detail").last(), seq=pl.col("seq").last()
    )
    return last.filter(~pl.col("scored")).sort("seq")


def _why(failed: pl.DataFrame, missing: int) -> str:
    """Return the most frequent reason for missing scores, with its latest message."""
    if not missing:
        return ""
    if not failed.height:
        return f"{missing} samples were never requested: did the run stop at its budget (judge.budget)?"
    reasons = failed.group_by("outcome").agg(times=pl.len(), seq=pl.col("seq").last(), detail=pl.col("detail").last())
    outcome, times, _, detail = reasons.sort("times", "seq", descending=True).row(0)
    said = f": {detail}" if detail else ""
    return f"{missing} of the samples have no score; {times} ended as '{outcome}'{said}"


def _billing(lines: pl.DataFrame, answered: pl.DataFrame, provider: str, thresholds: ProbeGate) -> list[Check]:
    billed = int(lines.filter(pl.col("outcome") != AttemptOutcome.HIT)["billable"].sum())
    if not thresholds.require_billed:
        return [info("billed calls", billed)]
    free = answered.filter(~pl.col("billable").fill_null(False)).height
    advice = f"'{provider}' reported no usage: use a live provider that bills; the local rubric is free"
    return [at_least("billed calls", billed, 1, advice), equal("scored calls without a bill", free, 0, advice)]


def _versions(lines: pl.DataFrame) -> list[str]:
    models = lines.filter(pl.col("outcome").is_in(SCORINGS))["model"].unique().sort()
    return [model or "(unnamed)" for model in models]


def _figures(lines: pl.DataFrame) -> list[Check]:
    unpriced = lines.filter(pl.col("billable").fill_null(False) & pl.col("cost_usd").is_null()).height
    return [
        info("attempts", lines.height),
        info("cost, USD", "unknown: set judge.prices" if unpriced else float(lines["cost_usd"].sum())),
        info("attempts of unknown cost", lines["cost_usd"].null_count()),
        info("tokens in", int(lines["tokens_in"].sum())),
        info("tokens out", int(lines["tokens_out"].sum())),
        info("model versions", ", ".join(_versions(lines))),
    ]


def probe_on(run: Run, dialogues: Sequence[Sequence[Message]]) -> GateResult:
    """Ask the judge about these dialogues, bypassing stored replies.

    Args:
        dialogues: `gates.probe.n` dialogues in chat format.

    Raises:
        RC1Error: when the judge cannot be asked, or stopped early.
    """
    judge, thresholds = run.config.judge, run.config.gates.probe
    judged, lines = fresh_scores(run, dialogues)
    result = probe_gate(
        lines,
        provider=judge.provider,
        asked=judged.rows["dialogue"].n_unique(),
        samples=judge.samples,
        thresholds=thresholds,
    )
    shown = (*result.checks, *_said_alike(lines))
    return replace(result, checks=shown)


def _said_alike(lines: pl.DataFrame) -> list[Check]:
    """Check that the probe's own replies differ; a few equal ones might go unnoticed in the whole log."""
    live = lines.filter(pl.col("outcome") == AttemptOutcome.OK)
    if not live.height or not (live["temperature"] > 0).all() or not live["provider"].is_in(sorted(LIVE)).all():
        return []
    sets = live.group_by("dialogue").agg(replies=pl.len(), different=pl.col("reply_sha256").n_unique())
    asked = sets.filter(pl.col("replies") > 1)
    same = number(asked.select((pl.col("different") == 1).mean()).item())
    shared = live.group_by("reply_sha256").agg(uses=pl.len(), dialogues=pl.col("dialogue").n_unique())
    other = shared.filter(pl.col("dialogues") > 1)["uses"].sum() / live.height
    advice = "the judge does not read the dialogues, or one reply was used for all: find out what answers"
    return [
        *([at_most("dialogues with identical replies, share", same, MAX_IDENTICAL, advice)] if asked.height else ()),
        at_most("replies that another dialogue got too, share", float(other), MAX_IDENTICAL, advice),
    ]


def _judge(evidence: Evidence, _: Round) -> GateResult:
    """Ask the judge about the first dialogues of the shadow set, bypassing stored replies."""
    run = evidence.run
    return probe_on(run, evidence.rows("shadow").head(run.config.gates.probe.n)["messages"].to_list())


SPEC = GateSpec(
    "judge_probe", "does the judge answer", ("shadow", "judge_spec"), _judge, reads_world=True, asks=True,
    on_score=True,
)  # fmt: skip
