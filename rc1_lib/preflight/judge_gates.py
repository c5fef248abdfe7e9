"""Gather the evidence of the judge's gates: by asking the judge, and by reading the usage log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import polars as pl

from rc1_lib.calibration.judge_agreement import judge_agreement
from rc1_lib.calibration.judged_rows import real_checks
from rc1_lib.checks import at_most, equal, number
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.gates.anti_simulation import anti_simulation_gate
from rc1_lib.gates.judge_probe import probe_gate
from rc1_lib.gates.judge_stability import stability_gate
from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.judge.judge import fresh_scores, open_judge, open_store
from rc1_lib.judge.providers import LIVE, model_asked
from rc1_lib.judge.store import Store
from rc1_lib.labels.label_file import read_labels
from rc1_lib.records import Check, GateResult, Message
from rc1_lib.run import Run


def _in_use(run: Run, store: Store) -> pl.Expr:
    """Return a filter for the log's lines of the configured judge: provider, instructions and requested model."""
    judge = open_judge(run, store)
    return (
        (pl.col("provider") == judge.config.provider)
        & (pl.col("spec") == judge.spec.spec)
        & (pl.col("model_asked") == model_asked(judge.config))
    )


def probe(evidence: Evidence) -> GateResult:
    """Ask the judge about the first dialogues of the shadow set, bypassing stored replies."""
    run = evidence.run
    return probe_on(run, evidence.rows("shadow").head(run.config.gates.probe.n)["messages"].to_list())


def probe_on(run: Run, dialogues: Sequence[Sequence[Message]]) -> GateResult:
    """Ask the judge about these dialogues, bypassing stored replies.

    Args:
        run: the run with the judge.
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
    shown = (*result.checks, *_said_alike(lines, run.config.gates.anti_simulation.max_identical))
    return replace(result, checks=shown)


def anti_simulation(evidence: Evidence, number: int) -> GateResult:
    """Check the latest scorings of the configured judge."""
    config = evidence.run.config
    with _existing_store(evidence.run) as store:
        log = store.log()
    own = log.filter(log["provider"] == config.judge.provider)
    result = anti_simulation_gate(
        own,
        round_name="round1" if number == 1 else "round2",
        samples=config.judge.samples,
        now=time.time(),
        thresholds=config.gates.anti_simulation,
    )
    twice = equal(
        "attempts standing twice, other judges' included", log.height - log["attempt_id"].n_unique(), 0,
        "lines of the usage log were copied; find out who wrote them",
    )  # fmt: skip
    real = real_checks(evidence.run, own["model"].to_list())
    return replace(result, checks=(*result.checks, twice, *real))


def stability(evidence: Evidence) -> GateResult:
    """Check how much the judge's samples of one dialogue differ, and how many dialogues have no score."""
    config = evidence.run.config
    with _existing_store(evidence.run) as store:
        own = store.log().filter(_in_use(evidence.run, store))
    return stability_gate(
        own, samples=config.judge.samples, thresholds=config.gates.stability, shared=config.gates.shared
    )


def agreement(evidence: Evidence) -> GateResult:
    """Have the judge score the dialogues that people labelled, and compare."""
    return judge_agreement(evidence.run, read_labels(evidence.path("labels"))).gate


@contextmanager
def _existing_store(run: Run) -> Iterator[Store]:
    path = run.workspace.path(run.config.judge.store.path)
    if not path.is_file():
        raise RC1Error(f"{path}: there is no usage log yet, so there are no calls to check; run rc1 probe-scorer first")
    with open_store(run) as store:
        yield store


def _said_alike(lines: pl.DataFrame, most: float) -> list[Check]:
    """Check that the probe's own replies differ; a few equal ones might go unnoticed in the whole log."""
    live = lines.filter(pl.col("outcome") == AttemptOutcome.OK)
    if not live.height or not (live["temperature"] > 0).all() or not live["provider"].is_in(sorted(LIVE)).all():
        return []
    sets = live.group_by("dialogue").agg(replies=pl.len(), different=pl.col("reply_sha256").n_unique())
    asked = sets.filter(pl.col("replies") > 1)
    same = number(asked.select((pl.col("different") == 1).mean()).item()) if asked.height else 0.0
    shared = live.group_by("reply_sha256").agg(uses=pl.len(), dialogues=pl.col("dialogue").n_unique())
    other = shared.filter(pl.col("dialogues") > 1)["uses"].sum() / live.height
    advice = "the judge does not read the dialogues, or one reply was used for all: find out what answers"
    return [
        at_most("dialogues with identical replies, share", same, most, advice),
        at_most("replies that another dialogue got too, share", float(other), most, advice),
    ]
