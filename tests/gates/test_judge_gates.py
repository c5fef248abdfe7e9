"""The judge's gates pass on every honest log, and fail in exactly the matching checks on each kind of fake."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import get_args

import polars as pl
import pytest

from rc1_lib.config.thresholds import AntiSimulationGate, ProbeGate
from rc1_lib.config.values import Round
from rc1_lib.gates.anti_simulation import anti_simulation_gate
from rc1_lib.gates.judge_probe import probe_gate
from rc1_lib.gates.judge_stability import stability_gate
from rc1_lib.judge.calls import AttemptOutcome
from rc1_lib.records import GateResult
from tests.gates.usage_logs import (
    DIMENSIONS,
    NOW,
    Judging,
    honest,
    judged,
    refinished,
    renumbered,
    sha,
    table,
)
from tests.gates.verdicts import advice, failed, value

ROUNDS: tuple[Round, ...] = get_args(Round)
PROBE = ProbeGate(n=8, require_billed=True)
ANTI = AntiSimulationGate(last=100, min_billable=1, cache_hit_lt={"round1": 0.90, "round2": 0.95})
LIVE, HIT = pl.col("outcome") == AttemptOutcome.OK, pl.col("outcome") == AttemptOutcome.HIT
SEQ = pl.col("seq")


def anti_simulation(
    log: pl.DataFrame, round_name: Round = "round1", *, samples: int = 3, now: float = NOW
) -> GateResult:
    return anti_simulation_gate(
        log, round_name=round_name, samples=samples, now=now, thresholds=ANTI
    )  # fmt: skip


def judge_stability(log: pl.DataFrame, samples: int = 3) -> GateResult:
    return stability_gate(log, samples=samples, max_variance=0.08)


def judge_probe(lines: pl.DataFrame, *, asked: int = 8, thresholds: ProbeGate = PROBE) -> GateResult:
    return probe_gate(lines, provider="gemini", asked=asked, samples=3, thresholds=thresholds)


# ---- honest logs ----
def short_probe(seed: int) -> pl.DataFrame:
    return table(judged(Judging(run="probe", seed=seed, dialogues=range(8))))


def quick_probe(seed: int) -> pl.DataFrame:
    """Return the probe of a server on the same machine."""
    return table(judged(Judging(run="probe", seed=seed, dialogues=range(8), median_ms=20.0)))


def mostly_cached(seed: int) -> pl.DataFrame:
    """Return a log in which four of five dialogues come from the cache."""
    known = [number for number in range(50) if number % 5]
    before = judged(Judging(run="run-1", seed=1000 + seed, dialogues=known, ends=NOW - 3 * 24 * 3600))
    return table(before, judged(Judging(run="run-2", seed=seed, dialogues=range(50), cached=before)))


def resumed(seed: int) -> pl.DataFrame:
    """Return a run killed with 8 calls in flight, and the next run, which records them as interrupted and continues."""
    first = judged(Judging(run="run-1", seed=seed, dialogues=range(30), ends=NOW - 600))
    done, open_ = first[:60], first[60:68]
    lost = tuple(
        replace(
            line, outcome=AttemptOutcome.INTERRUPTED, model="", request_id="", tokens_in=0, tokens_out=0, cost_usd=None,
            billable=False, reply_sha256="", scores=None, status=None, latency_ms=400.0,
        )
        for line in open_
    )  # fmt: skip
    return table(done, lost, judged(Judging(run="run-2", seed=1000 + seed, dialogues=range(30), cached=done)))


HONEST_LOGS: tuple[Callable[[int], pl.DataFrame], ...] = (
    honest,
    short_probe,
    quick_probe,
    mostly_cached,
    resumed,
)


@pytest.mark.parametrize("kind", HONEST_LOGS, ids=lambda kind: kind.__name__)
def test_honest_logs_pass(kind: Callable[[int], pl.DataFrame]) -> None:
    for seed in range(6):
        log = kind(seed)
        # Round 2 differs only in a looser threshold: the first log is evaluated with it.
        rounds = ROUNDS if seed == 0 else ROUNDS[:1]
        verdicts = [failed(anti_simulation(log, name)) for name in rounds] + [failed(judge_stability(log))]
        assert not any(verdicts), (seed, verdicts)


@pytest.mark.parametrize("kind", [short_probe, quick_probe], ids=lambda kind: kind.__name__)
def test_honest_probes_pass(kind: Callable[[int], pl.DataFrame]) -> None:
    assert [failed(judge_probe(kind(seed))) for seed in range(8)] == [set()] * 8


# ---- anti-simulation ----
def where(log: pl.DataFrame, which: pl.Expr, **changes: object) -> pl.DataFrame:
    """Change the named columns on the lines `which`."""
    return log.with_columns(
        pl.when(which).then(change if isinstance(change, pl.Expr) else pl.lit(change)).otherwise(name).alias(name)
        for name, change in changes.items()
    )


def few(log: pl.DataFrame) -> pl.Expr:
    """Select the last three live scorings."""
    return SEQ.is_in(log.filter(LIVE)["seq"].tail(3).implode())


def fresh_ids(block: pl.DataFrame, *columns: str) -> pl.DataFrame:
    return block.with_columns(pl.format("{}-{}", pl.lit(column), SEQ).alias(column) for column in columns)


def appended(log: pl.DataFrame, change: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Append a changed copy of today's first 40 scorings."""
    return renumbered(log, change(log.filter(LIVE & (pl.col("run_id") == "run-2")).head(40)))


def relabelled(block: pl.DataFrame) -> pl.DataFrame:
    return fresh_ids(block, "attempt_id", "request_id", "run_id", "reply_sha256")


def retimed(block: pl.DataFrame, by: float) -> pl.DataFrame:
    """Shift the start times by `by` seconds and change every latency a little."""
    wobble = 1.0 + (SEQ % 7) * 0.001 + 0.0001
    return block.with_columns(started=pl.col("started") + by, latency_ms=pl.col("latency_ms") * wobble)


def with_share_cached(share: float) -> pl.DataFrame:
    """Return exactly 100 scorings of today, of which `share` are replays, in dialogues of 5 samples."""
    known = range(20 - round(20 * (1 - share)))
    before = judged(Judging(run="run-1", seed=1, dialogues=known, samples=5, ends=NOW - 7 * 24 * 3600))
    return table(before, judged(Judging(run="run-2", seed=2, dialogues=range(20), samples=5, cached=before)))


SPREAD = {"latency, sd / mean", "latency, middle half / median"}
DAMAGES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], set[str]]] = {
    "zero latency": (
        lambda log: refinished(where(log, LIVE | HIT, latency_ms=0.0)), {"scorings that took no time"} | SPREAD,
    ),
    "zero latency of some": (lambda log: where(log, few(log), latency_ms=0.0), {"scorings that took no time"}),
    "zero latency of replays": (lambda log: where(log, HIT, latency_ms=0.0), {"scorings that took no time"}),
    "negative latency": (lambda log: where(log, few(log), latency_ms=-5.0), {"scorings that took no time"}),
    "unknown latency of replays": (lambda log: where(log, HIT, latency_ms=math.nan), {"scorings that took no time"}),
    "constant latency": (lambda log: refinished(where(log, LIVE, latency_ms=500.0)), SPREAD),
    "a timer's latency": (lambda log: refinished(where(log, LIVE, latency_ms=500.0 + 0.01 * (SEQ % 100))), SPREAD),
    "constant latency but for a few": (
        lambda log: refinished(where(log, LIVE & ~few(log), latency_ms=500.0 + 0.01 * (SEQ % 100))),
        {"latency, middle half / median"},
    ),
    "no usage": (
        lambda log: where(log, LIVE, tokens_in=0, tokens_out=0, billable=False),
        {"live scorings without usage", "billed scorings"},
    ),
    "no usage of some": (
        lambda log: where(log, few(log), tokens_in=0, tokens_out=0, billable=False), {"live scorings without usage"},
    ),
    "billed without tokens": (
        lambda log: where(log, LIVE, tokens_in=0, tokens_out=0), {"live scorings whose bill and usage disagree"},
    ),
    "billed without tokens written": (
        lambda log: where(log, few(log), tokens_out=0), {"live scorings whose bill and usage disagree"},
    ),
    "no call billed": (
        lambda log: where(log, LIVE, billable=False),
        {"live scorings whose bill and usage disagree", "billed scorings"},
    ),
    "replays dressed up as paid": (
        lambda log: where(log, HIT, tokens_in=900, tokens_out=90, billable=True), {"replays with a bill"},
    ),
    "the same request id always": (lambda log: where(log, LIVE, request_id="r-1"), {"repeated request ids"}),
    "a request id twice": (
        lambda log: where(log, few(log), request_id=pl.col("request_id").sort_by("seq").first()),
        {"repeated request ids"},
    ),
    "no request ids": (lambda log: where(log, LIVE, request_id=""), {"live scorings without a request id"}),
    "null request ids": (
        lambda log: where(log, few(log), request_id=pl.lit(None, pl.String)), {"live scorings without a request id"},
    ),
    "lines copied as they are": (
        lambda log: appended(log, lambda block: block),
        {"attempts standing twice", "times going back", "repeated timings", "repeated request ids"},
    ),
    "lines copied under new ids": (
        lambda log: appended(log, relabelled), {"times going back", "repeated timings"},
    ),
    "lines copied under new ids with new latencies": (
        lambda log: appended(log, lambda block: retimed(relabelled(block), 0.0)), {"times going back"},
    ),
    "lines copied under new ids and times": (
        lambda log: appended(
            log,
            lambda block: fresh_ids(block, "attempt_id", "request_id", "run_id").with_columns(
                started=pl.col("started") + 70.0
            ),
        ),
        {"repeated timings"},
    ),
    "lines copied under new times": (
        lambda log: appended(log, lambda block: retimed(fresh_ids(block, "run_id", "request_id"), 70.0)),
        {"attempts standing twice"},
    ),
    "replies used again": (
        lambda log: appended(log, lambda block: retimed(fresh_ids(block, "run_id", "attempt_id"), 70.0)),
        {"repeated request ids"},
    ),
    "yesterday's lines put at the end": (
        lambda log: renumbered(
            log, retimed(relabelled(log.filter(LIVE & (pl.col("run_id") == "run-1"))), 0.0).tail(40)
        ),
        {"times going back"},
    ),
    "an old log": (
        lambda log: log.with_columns(started=pl.col("started") - 30 * 24 * 3600), {"scorings of the last 24 hours"},
    ),
    "times in the future": (lambda log: log.with_columns(started=pl.col("started") + 3600), {"times in the future"}),
    "no times": (lambda log: where(log, few(log), started=math.nan), {"times in the future"}),
    "one reply for all samples": (
        lambda log: where(log, LIVE, reply_sha256=pl.col("dialogue")), {"dialogues with identical replies, share"},
    ),
    "the same three replies for every dialogue": (
        lambda log: where(log, LIVE, reply_sha256=pl.col("sample").cast(pl.String)),
        {"replies that another dialogue got too, share"},
    ),
    "a constant judge": (
        lambda log: where(log, LIVE, reply_sha256="same"),
        {"dialogues with identical replies, share", "replies that another dialogue got too, share"},
    ),
    "a cache-only run": (
        lambda log: log.filter(HIT),
        {"live scorings", "billed scorings", "share from the cache", *SPREAD},
    ),
    "one live scoring": (
        lambda log: pl.concat([log.filter(HIT).tail(4), log.filter(LIVE).tail(1)]),
        {*SPREAD, "dialogues with identical replies, share"},
    ),
    "no scorings": (lambda log: log.filter(~LIVE & ~HIT), {"scorings of the last 24 hours"}),
    "an empty log": (lambda log: log.head(0), {"scorings of the last 24 hours"}),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_each_fake_log_fails_exactly_the_matching_checks(name: str) -> None:
    damage, expected = DAMAGES[name]
    assert failed(anti_simulation(damage(honest(7)))) == expected


@pytest.mark.parametrize(
    ("share", "expected"), [(0.85, set()), (0.90, {"round1"}), (0.95, {"round1", "round2"})]
)  # fmt: skip
def test_the_share_from_the_cache_fails_at_the_threshold_of_its_round(share: float, expected: set[str]) -> None:
    log = with_share_cached(share)
    verdicts = {name: failed(anti_simulation(log, name, samples=5)) for name in ROUNDS}
    assert value(anti_simulation(log), "share from the cache") == pytest.approx(share, abs=1e-12)
    assert verdicts == {name: {"share from the cache"} if name in expected else set() for name in ROUNDS}


def test_identical_replies_pass_at_temperature_0() -> None:
    """At temperature 0 the samples of a dialogue may agree; those of different dialogues must still differ."""
    greedy = where(honest(3), LIVE, reply_sha256=pl.col("dialogue"), temperature=0.0)
    assert failed(anti_simulation(greedy)) == set()
    assert failed(anti_simulation(where(greedy, LIVE, reply_sha256="same"))) == {
        "replies that another dialogue got too, share"
    }


def test_cost_without_prices_is_unknown_and_not_0() -> None:
    unpriced = where(honest(3), LIVE, cost_usd=pl.lit(None, pl.Float64))
    assert value(anti_simulation(honest(3)), "cost of these, USD") > 0
    assert value(anti_simulation(unpriced), "cost of these, USD") == "unknown: set judge.prices"


def test_only_the_last_scorings_are_checked() -> None:
    """Earlier fakes are not checked; the newest lines are, in whatever order the rows come."""
    log = honest(5)
    early = pl.col("seq").is_in(log.filter(LIVE & (pl.col("run_id") == "run-2"))["seq"].head(20).implode())
    assert failed(anti_simulation(where(log, early, latency_ms=0.0))) == set()
    assert failed(anti_simulation(where(log, few(log), latency_ms=0.0).sort("seq", descending=True))) == {
        "scorings that took no time"
    }


# ---- probe ----
def failing(lines: pl.DataFrame, outcome: AttemptOutcome, detail: str, which: pl.Expr) -> pl.DataFrame:
    return where(
        lines, which & LIVE, outcome=outcome.value, detail=detail, scores=pl.lit(None, pl.String), model="",
        billable=False, tokens_in=0, tokens_out=0,
    )  # fmt: skip


ONE_DIALOGUE = pl.col("dialogue") == sha("dialogue", 3)
PROBE_DAMAGES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], set[str]]] = {
    "one sample lost": (
        lambda log: log.filter(~(ONE_DIALOGUE & (pl.col("sample") == 1))), {"dialogues with every sample scored"},
    ),
    "one dialogue timed out": (
        lambda log: failing(log, AttemptOutcome.TIMEOUT, "no reply", ONE_DIALOGUE),
        {"dialogues with every sample scored"},
    ),
    "a sample scored twice in another's place": (
        lambda log: where(log, ONE_DIALOGUE, sample=0), {"dialogues with every sample scored"},
    ),
    "read from the cache": (
        lambda log: where(log, ONE_DIALOGUE & LIVE, outcome=AttemptOutcome.HIT.value),
        {"dialogues with every sample scored"},
    ),
    "zero latency": (lambda log: where(log, ONE_DIALOGUE, latency_ms=0.0), {"shortest latency, ms"}),
    "unknown latency": (lambda log: where(log, ONE_DIALOGUE, latency_ms=math.nan), {"shortest latency, ms"}),
    "one call unbilled": (
        lambda log: where(log, ONE_DIALOGUE & LIVE, billable=False), {"scored calls without a bill"},
    ),
    "no call billed": (
        lambda log: where(log, pl.lit(True), billable=False), {"billed calls", "scored calls without a bill"},
    ),
    "no reply at all": (
        lambda log: (
            failing(log, AttemptOutcome.REJECTED, "API key not valid", pl.lit(True)).filter(~pl.col("billable"))
        ),
        {"dialogues with every sample scored", "shortest latency, ms", "billed calls"},
    ),
    "no lines": (
        lambda log: log.head(0), {"dialogues with every sample scored", "shortest latency, ms", "billed calls"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBE_DAMAGES)
def test_each_failed_probe_fails_exactly_the_matching_checks(name: str) -> None:
    damage, expected = PROBE_DAMAGES[name]
    assert failed(judge_probe(damage(short_probe(7)))) == expected


def test_a_probe_of_too_few_dialogues_fails() -> None:
    assert failed(judge_probe(table(judged(Judging(run="probe", seed=1, dialogues=range(5)))), asked=5)) == {
        "dialogues asked"
    }
    assert "dialogues asked" in failed(judge_probe(short_probe(1).head(0), asked=0))


def test_a_probe_without_bills_passes_if_require_billed_is_off() -> None:
    lines = where(short_probe(1), pl.lit(True), billable=False)
    assert failed(judge_probe(lines, thresholds=ProbeGate(n=8, require_billed=False))) == set()


# ---- stability ----
def rescored(log: pl.DataFrame, which: Callable[[int], bool], spread: float, dimensions: Sequence[str]) -> pl.DataFrame:
    """Replace the scores of the dialogues with `which(number)` by draws from 0.5 ± `spread`."""
    rng = random.Random(4)
    texts = []
    numbers = {dialogue: number for number, dialogue in enumerate(log["dialogue"].unique(maintain_order=True))}
    for dialogue, text in log.select("dialogue", "scores").iter_rows():
        if text is not None and which(numbers[dialogue]):
            scores = json.loads(text)
            scores |= {name: min(1.0, max(0.0, rng.choice([0.5 - spread, 0.5 + spread]))) for name in dimensions}
            text = json.dumps(scores)
        texts.append(text)
    return log.with_columns(scores=pl.Series(texts, dtype=pl.String))


def test_a_noisy_judge_fails_and_the_advice_names_the_dimension() -> None:
    result = judge_stability(rescored(honest(1), lambda number: True, 0.5, ["concise"]))
    assert failed(result) == {"largest pooled variance", "unstable dialogues, share"}
    assert "'concise'" in advice(result, "largest pooled variance")
    assert {row["dimension"] for row in result.offenders} == {"concise"}


def test_a_share_of_high_variance_dialogues_fails_although_the_pooled_variance_passes() -> None:
    result = judge_stability(rescored(honest(1), lambda number: number % 5 == 0, 0.45, DIMENSIONS))
    assert failed(result) == {"unstable dialogues, share"}
    assert {row["reason"] for row in result.offenders} == {"unstable"}


def test_missing_scores_fail_and_their_reasons_are_listed() -> None:
    log = honest(1)
    worse = failing(log, AttemptOutcome.REFUSED, "declined", pl.col("dialogue") == sha("dialogue", 1))
    worse = failing(
        worse, AttemptOutcome.TIMEOUT, "no reply", pl.col("dialogue").is_in([sha("dialogue", 4), sha("dialogue", 5)])
    )
    worse = worse.filter((pl.col("dialogue") != sha("dialogue", 7)) | (pl.col("sample") == 0))
    result = judge_stability(worse)
    assert failed(result) == {"coverage"}
    assert value(result, "coverage") == pytest.approx(56 / 60)
    assert "2 timeout, 1 not asked, 1 refused" in advice(result, "coverage")
    assert {(row["id"], row["outcome"]) for row in result.offenders} == {
        (sha("dialogue", 1), "refused"),
        (sha("dialogue", 4), "timeout"),
        (sha("dialogue", 5), "timeout"),
        (sha("dialogue", 7), "not asked"),
    }


def test_a_changed_model_version_fails() -> None:
    log = honest(1)
    result = judge_stability(where(log, few(log), model="gemini-2.5-flash-002"))
    assert failed(result) == {"model versions"}
    assert "gemini-2.5-flash-001, gemini-2.5-flash-002" in advice(result, "model versions")
