"""Stability: the judge scores nearly every dialogue, repeats its scores when asked again, and stays one model."""

from __future__ import annotations

import math

import polars as pl

from rc1_lib.checks import at_least, at_most, info, number, offenders
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.judge.calls import SCORINGS, AttemptOutcome
from rc1_lib.judge.judge import existing_store, open_judge
from rc1_lib.judge.noise import OVERALL, Noise, long_scores, pooled
from rc1_lib.judge.providers import model_asked
from rc1_lib.judge.results import MIN_COVERAGE, medians_and_variances
from rc1_lib.judge.store import Store
from rc1_lib.numbers.uncertainty import CONFIDENCE, CheckInterval
from rc1_lib.records import Check, GateResult
from rc1_lib.run import Run

_NAME = "judge_stability"
_LAST = 100
"""Dialogues that are read: as many as scorings by `anti_simulation`."""
_MAX_UNSTABLE = 0.1
"""Largest share of unstable dialogues: a few are always at a border of the instructions."""
_SCORED = pl.col("outcome").is_in(SCORINGS) & pl.col("scores").is_not_null()
_JUDGE = ("provider", "spec", "model_asked")
_NOT_ASKED = "not asked"
_NOTHING_TWICE = "no dialogue has two scores, so the noise is unknown: see the coverage"


def stability_gate(log: pl.DataFrame, *, samples: int, max_variance: float, last: int = _LAST) -> GateResult:
    """Check the latest dialogues that the current judge was asked about.

    The current judge is that of the newest line: its provider, instructions and requested model. For each dialogue the
    newest run counts, because its scores are in use and replayed replies are not new observations. Coverage and model
    versions are those of the newest run, because what failed earlier may never be requested again, and every use of
    scores has its own coverage check.

    Args:
        log: the usage log, columns of `LOG_SCHEMA`.
        samples: K, the scores wanted for each dialogue.
        max_variance: `gates.stability.max_variance`.
        last: how many dialogues are read.
    """
    in_use = log.sort("seq").join(log.sort("seq").tail(1).select(_JUDGE), on=_JUDGE, how="semi", nulls_equal=True)
    lines = _newest_run_lines(in_use, last).filter(pl.col("sample").is_between(0, samples - 1))
    scored = lines.filter(_SCORED).unique(["dialogue", "sample"], keep="last", maintain_order=True)
    # A run that requests single samples again (`scorecache replay-bad`) says nothing about whole dialogues.
    whole = lines.filter(pl.col("sample").n_unique().over("run_id", "dialogue") == samples)
    newest = pl.col("run_id") == _newest_run(whole if whole.height else lines)
    held = _held(lines.filter(newest), samples)
    scores = long_scores(scored)
    spread = medians_and_variances(scores)
    checks = [_coverage(held), _models(scored.filter(newest))]
    unscored = held.filter(pl.col("scored") < samples).select(id="dialogue", scored="scored", outcome="reason")
    rows = offenders(unscored, "unscored")
    figures = [
        info("dialogues of the newest run", held.height),
        info("dialogues read", lines["dialogue"].n_unique()),
        info("lines of other judges, left out", log.height - in_use.height),
    ]
    if samples < 2:
        return GateResult(
            _NAME, (*checks, *figures), offenders=rows,
            error="cannot be evaluated: one sample per dialogue does not show how far the judge's scores vary; "
            "set judge.samples to 2 or more",
        )  # fmt: skip
    noises = pooled(scores, CONFIDENCE)
    unstable = spread.filter(pl.col("variance") > max_variance)
    checks += [_variance(noises, max_variance), _unstable(spread, unstable), *figures]
    checks += _intervals(noises)
    rows += offenders(unstable.select("dimension", "median", "variance", id="dialogue"), "unstable")
    return GateResult(_NAME, tuple(checks), offenders=rows)


def _newest_run(lines: pl.DataFrame) -> str:
    """Return the run that wrote last, not counting lines added for a killed one."""
    ended = lines.filter(pl.col("outcome") != AttemptOutcome.INTERRUPTED)
    last = (ended if ended.height else lines).tail(1)["run_id"]
    return str(last.item()) if last.len() else ""


def _newest_run_lines(lines: pl.DataFrame, last: int) -> pl.DataFrame:
    """Return the lines of the newest run about each of the latest dialogues.

    The next process logs the attempts that a killed one left open, perhaps after the dialogue was scored again. Such a
    line does not make its run the newer one, and a run with only such lines counts as the oldest.
    """
    ended = pl.col("seq").filter(pl.col("outcome") != AttemptOutcome.INTERRUPTED).max()
    newest = (
        lines.group_by("run_id", "dialogue")
        .agg(ended=ended, seq=pl.coalesce(ended, pl.col("seq").max()))
        .sort("ended", "seq", descending=True, nulls_last=True)
        .unique("dialogue", keep="first", maintain_order=True)
        .sort("seq", descending=True)
        .head(last)
    )
    return lines.join(newest.select("run_id", "dialogue"), on=["run_id", "dialogue"], how="semi")


def _held(lines: pl.DataFrame, samples: int) -> pl.DataFrame:
    """Return each dialogue with its number of scored samples, and why the last missing one is missing."""
    by_sample = lines.group_by("dialogue", "sample", maintain_order=True).agg(
        scored=_SCORED.any(), seq=pl.col("seq").last(), outcome=pl.col("outcome").last()
    )
    reason = pl.col("outcome").filter(~pl.col("scored")).last()
    return (
        by_sample.sort("seq")
        .group_by("dialogue", maintain_order=True)
        .agg(scored=pl.col("scored").sum().cast(pl.Int64), reason=reason)
        .with_columns(reason=pl.when(pl.col("scored") < samples).then(pl.col("reason").fill_null(_NOT_ASKED)))
    )


def _coverage(held: pl.DataFrame) -> Check:
    counts = held["reason"].drop_nulls().value_counts(sort=True).sort("count", "reason", descending=[True, False])
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.iter_rows())
    advice = f"dialogues with missing samples, by reason: {reasons}; remove the cause, then score them again"
    if not held.height:
        advice = "the usage log has no dialogues: the judge was never asked"
    share = number(held["reason"].is_null().mean())
    return at_least("coverage", share, MIN_COVERAGE, advice if reasons or not held.height else "")


def _models(scored: pl.DataFrame) -> Check:
    models = [model or "(unnamed)" for model in scored["model"].unique().sort()]
    return at_most(
        "model versions", len(models), 1,
        f"answers came from {', '.join(models)}; scores of different models are not on one scale: "
        "name a fixed version in judge.model and score again",
    )  # fmt: skip


def _variance(noises: list[Noise], max_variance: float) -> Check:
    """Check the pooled variance of the noisiest dimension; NaN, which cannot be ranked, counts as noisiest."""
    by_dimension = [noise for noise in noises if noise.dimension != OVERALL]
    worst = max(
        by_dimension, key=lambda noise: math.inf if math.isnan(noise.variance) else noise.variance, default=None
    )
    advice = (
        f"'{worst.dimension}' varies most between samples: define it more sharply in the judge's instructions, "
        "or lower judge.sampling.temperature"
        if worst is not None and worst.df
        else _NOTHING_TWICE
    )
    value = worst.variance if worst is not None else math.nan
    interval = None
    if worst is not None:
        ends = (worst.low**2, worst.high**2)
        interval = CheckInterval(*ends, CONFIDENCE, worst.dialogues, "dialogues")
    return at_most("largest pooled variance", value, max_variance, advice, interval)


def _unstable(spread: pl.DataFrame, unstable: pl.DataFrame) -> Check:
    measured = spread.filter(pl.col("samples") >= 2)["dialogue"].n_unique()
    share = unstable["dialogue"].n_unique() / measured if measured else math.nan
    return at_most(
        "unstable dialogues, share", share, _MAX_UNSTABLE,
        "read the offenders: if samples of the same dialogue disagree, the instructions are ambiguous"
        if measured
        else _NOTHING_TWICE,
    )  # fmt: skip


def _intervals(noises: list[Noise]) -> list[Check]:
    return [
        check
        for noise in noises
        for check in (
            info(f"sd between samples[{noise.dimension}]", noise.sd),
            info(f"its {100 * CONFIDENCE:g} % interval[{noise.dimension}]", f"{noise.low:.4g} to {noise.high:.4g}"),
        )
    ]


def _in_use(run: Run, store: Store) -> pl.Expr:
    """Return a filter for the log's lines of the configured judge: provider, instructions and requested model."""
    judge = open_judge(run, store)
    return (
        (pl.col("provider") == judge.config.provider)
        & (pl.col("spec") == judge.spec.spec)
        & (pl.col("model_asked") == model_asked(judge.config))
    )


def _judge(evidence: Evidence, _: Round) -> GateResult:
    """Check how much the judge's samples of one dialogue differ, and how many dialogues have no score."""
    config = evidence.run.config
    with existing_store(evidence.run) as store:
        own = store.log().filter(_in_use(evidence.run, store))
    return stability_gate(own, samples=config.judge.samples, max_variance=config.gates.stability.max_variance)


SPEC = GateSpec(_NAME, "does the judge agree with itself", ("judge_spec",), _judge, reads_world=True, on_score=True)
