"""Simulated usage logs of an honest judge with concurrent calls."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import polars as pl

from rc1_lib.judge.calls import AttemptOutcome, Line
from rc1_lib.judge.store import LOG_SCHEMA

DIMENSIONS = ("answered", "grounded", "well_formed", "economical", "reasoned", "concise", "restrained")
NOW = 1_790_000_000.0
MODEL = "gemini-2.5-flash-001"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """One run of an honest judge.

    Attributes:
        run: the run's id.
        seed: seed of all random draws.
        dialogues: numbers of the dialogues to score.
        cached: the lines of an earlier run; dialogues scored there are replayed.
        samples: scores per dialogue.
        concurrency: calls in flight at once.
        ends: when the last line is written, in seconds since 1970.
        median_ms: median of the lognormal latencies.
        sigma: sigma of the lognormal latencies.
        sd: standard deviation of the noise between samples.
        failure_rate: share of calls that fail and are retried.
        temperature: sampling temperature.
    """

    run: str
    seed: int
    dialogues: Sequence[int]
    cached: tuple[Line, ...] = ()
    samples: int = 3
    concurrency: int = 8
    ends: float = NOW - 30.0
    median_ms: float = 900.0
    sigma: float = 0.4
    sd: float = 0.03
    failure_rate: float = 0.08
    temperature: float = 0.7


FAILURES: dict[AttemptOutcome, tuple[int | None, str]] = {
    AttemptOutcome.RATE_LIMITED: (429, "Resource exhausted"),
    AttemptOutcome.SERVER_ERROR: (503, "The model is overloaded"),
    AttemptOutcome.TIMEOUT: (None, "no reply within 60 s"),
    AttemptOutcome.BAD_REPLY: (200, "the reply is not JSON"),
}


@cache
def sha(*parts: object) -> str:
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()


def judged(judging: Judging) -> tuple[Line, ...]:
    """Return the lines of one run, in the order in which its calls finish."""
    rng = random.Random(judging.seed)
    lines = sorted(_calls(judging, rng), key=lambda line: line.started + line.latency_ms / 1000)
    last = max(line.started + line.latency_ms / 1000 for line in lines)
    return tuple(replace(line, started=judging.ends + line.started - last) for line in lines)


@cache
def _levels(number: int) -> dict[str, float]:
    """Return the judge's scores of a dialogue without noise."""
    rng = random.Random(number)
    return {name: rng.uniform(0.35, 0.65) for name in DIMENSIONS}


def _calls(judging: Judging, rng: random.Random) -> Iterator[Line]:
    """Yield calls from time 0 on: each free worker takes the next sample and keeps it through its retries."""
    replays = {(line.dialogue, line.sample): line for line in judging.cached if line.outcome is AttemptOutcome.OK}
    free = [1e-4 * place for place in range(judging.concurrency)]
    tasks = itertools.product(judging.dialogues, range(judging.samples))
    for number, sample in tasks:
        clock = heapq.heappop(free)
        dialogue = sha("dialogue", number)
        known = replays.get((dialogue, sample))
        if known is not None:
            line = _replay(known, judging.run, rng, clock)
            yield line
            heapq.heappush(free, clock + line.latency_ms / 1000 + rng.uniform(1e-5, 1e-4))
            continue
        for attempt in itertools.count(1):
            failure = rng.choice(list(FAILURES)) if rng.random() < judging.failure_rate and attempt < 4 else None
            line = _call(judging, rng, number, sample, attempt, clock, failure)
            yield line
            clock += line.latency_ms / 1000 + rng.uniform(1e-4, 1e-3)
            if failure is None:
                break
            clock += rng.uniform(0.1, 0.5) * 2**attempt
        heapq.heappush(free, clock)


def _call(
    judging: Judging,
    rng: random.Random,
    number: int,
    sample: int,
    attempt: int,
    clock: float,
    failure: AttemptOutcome | None,
) -> Line:
    status, detail = FAILURES[failure] if failure else (200, "")
    scores = {name: min(1.0, max(0.0, level + rng.gauss(0, judging.sd))) for name, level in _levels(number).items()}
    latency = judging.median_ms * rng.lognormvariate(0, judging.sigma)
    answered = failure in (None, AttemptOutcome.BAD_REPLY)
    tokens_in, tokens_out = (800 + 7 * number, rng.randrange(70, 130)) if answered else (0, 0)
    cost = (0.30 * tokens_in + 2.50 * tokens_out) / 1e6
    token = f"{rng.getrandbits(64):016x}"
    return Line(
        attempt_id=f"a-{token}",
        run_id=judging.run,
        ask_key=sha("ask", number, sample),
        dialogue=sha("dialogue", number),
        sample=sample,
        attempt=attempt,
        provider="gemini",
        spec="v1",
        model_asked="gemini-2.5-flash",
        model=MODEL if answered else "",
        temperature=judging.temperature,
        outcome=failure or AttemptOutcome.OK,
        started=clock,
        latency_ms=latency if failure is not AttemptOutcome.TIMEOUT else 60_000 + rng.uniform(0, 20),
        status=status,
        request_id=f"r-{token}" if answered else "",
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost_usd=cost if answered else (None if failure is AttemptOutcome.TIMEOUT else 0.0),
        billable=answered,
        reply_sha256=sha("reply", token) if answered else "",
        scores=None if failure else scores,
        detail=detail,
    )


def _replay(known: Line, run: str, rng: random.Random, clock: float) -> Line:
    return replace(
        known,
        attempt_id=f"h-{rng.getrandbits(64):016x}",
        run_id=run,
        attempt=1,
        outcome=AttemptOutcome.HIT,
        started=clock,
        latency_ms=rng.uniform(0.02, 0.4),
        status=None,
        tokens_in=0,
        tokens_out=0,
        cost_usd=0.0,
        billable=False,
    )


def table(*runs: tuple[Line, ...]) -> pl.DataFrame:
    """Return a log of these runs, one after the other."""
    lines = list(itertools.chain(*runs))
    columns: dict[str, list[object]] = {
        field.name: [getattr(line, field.name) for line in lines] for field in fields(Line)
    }
    columns["seq"] = list(range(1, len(lines) + 1))
    columns["scores"] = [None if line.scores is None else json.dumps(line.scores) for line in lines]
    return pl.DataFrame({name: columns[name] for name in LOG_SCHEMA}, schema=LOG_SCHEMA)


@cache
def honest(seed: int) -> pl.DataFrame:
    """Return a log with history: 20 dialogues yesterday; 60 today, of which every third comes from the cache."""
    before = judged(Judging(run="run-1", seed=10_000 + seed, dialogues=range(0, 60, 3), ends=NOW - 30 * 3600))
    after = judged(Judging(run="run-2", seed=seed, dialogues=range(60), cached=before))
    return table(before, after)


def renumbered(*blocks: pl.DataFrame) -> pl.DataFrame:
    """Renumber the lines, as a copied or cut log would."""
    return pl.concat(blocks).with_columns(seq=pl.int_range(1, pl.len() + 1, dtype=pl.Int64))


def refinished(log: pl.DataFrame) -> pl.DataFrame:
    """Sort the lines by finish time, after latencies were changed."""
    return renumbered(log.sort(pl.col("started") + pl.col("latency_ms") / 1000))
