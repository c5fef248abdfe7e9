"""Anti-simulation (judge authenticity): the latest scores come from a real judge that took time and was paid.

Two families of checks. *Bookkeeping* compares each recent scoring with the whole log: a copied line, an impossible
time, a provider's id that was used before. *Evidence* looks at scorings recent enough to describe today's judge: how
long they took, what usage was reported, whether replies differ, and how many came from the cache.

A careful forger can invent any log; the gate detects what is cheaper than asking a real judge.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import polars as pl

from rc1_lib.calibration.judged_rows import real_checks
from rc1_lib.checks import above, at_least, at_most, below, equal, info, number, offenders
from rc1_lib.config.thresholds import AntiSimulationGate
from rc1_lib.config.values import Round
from rc1_lib.evidence import Evidence
from rc1_lib.gates.spec import GateSpec
from rc1_lib.judge.calls import SCORINGS, AttemptOutcome
from rc1_lib.judge.judge import existing_store
from rc1_lib.records import Check, GateResult

_NAME = "anti_simulation"
_MIN_LATENCY_SPREAD = 0.01
"""Smallest ratio of standard deviation to mean of the live latencies: no network keeps them within a per cent."""
MAX_IDENTICAL = 0.5
"""Largest share of dialogues whose K replies at a temperature above 0 are identical: a judge may often be sure."""
_MAX_AGE_HOURS = 24
"""Age of a live scoring from which it is no evidence any more: as long as a ticket holds."""
_MS = 1e-3
_LIVE = pl.col("outcome") == AttemptOutcome.OK
_READ, _WROTE = pl.col("tokens_in").fill_null(0) > 0, pl.col("tokens_out").fill_null(0) > 0
_BILLED = pl.col("billable").fill_null(False)
_UNNAMED = pl.col("request_id").fill_null("") == ""
_WARM = pl.col("temperature").ne_missing(0.0)


@dataclass(frozen=True, slots=True)
class _Fault:
    """A kind of line that an honest log does not contain."""

    name: str
    is_so: pl.Expr
    advice: str


_COPIED = (
    _Fault(
        "attempts standing twice", pl.col("attempt_uses") > 1,
        "the log contains the same attempt more than once, so lines were copied. Do not edit it by hand: restore "
        "the log, or start a new one and score again",
    ),
    _Fault(
        "times going back", pl.col("goes_back"),
        "lines were written long after later ones had begun: they were inserted afterwards, or the machine's clock "
        "was set back; score again",
    ),
    _Fault(
        "times in the future", pl.col("ahead"),
        "lines are dated in the future: correct the machine's clock and score again",
    ),
    _Fault(
        "repeated timings", _LIVE & (pl.col("timing_uses") > 1),
        "two calls have exactly the same latency, which never happens on a network: lines were copied; "
        "score again",
    ),
    _Fault(
        "repeated request ids", _LIVE & ~_UNNAMED & (pl.col("request_uses") > 1),
        "a provider uses each reply id once: find out what answers in its place (judge.base_url, a proxy's cache)",
    ),
)  # fmt: skip
"""Found by comparison with the whole log."""
_FAKED = (
    _Fault(
        "scorings that took no time", ~((pl.col("latency_ms") > 0) & pl.col("latency_ms").is_finite()).fill_null(False),
        "even the cache takes some time to answer: a stand-in replied (check judge.provider, judge.base_url)",
    ),
    _Fault(
        "live scorings without a request id", _LIVE & _UNNAMED,
        "use a provider or server that gives each reply an id (judge.provider, judge.base_url)",
    ),
    _Fault(
        "live scorings without usage", _LIVE & ~_BILLED & ~(_READ & _WROTE),
        "use a provider or server that reports token usage (judge.provider, judge.base_url)",
    ),
    _Fault(
        "live scorings whose bill and usage disagree", _LIVE & (_BILLED != (_READ & _WROTE)),
        "providers never report a bill without tokens, or tokens without a bill: find out what answers "
        "in its place",
    ),
    _Fault(
        "replays with a bill",
        ~_LIVE & (_BILLED | _READ | _WROTE | (pl.col("cost_usd").fill_null(0.0) != 0.0)),
        "a score from the cache costs nothing: somebody logged replays as calls",
    ),
)  # fmt: skip
"""Found by looking at each line alone."""


def anti_simulation_gate(
    log: pl.DataFrame,
    *,
    round_name: Round,
    samples: int,
    now: float,
    thresholds: AntiSimulationGate,
) -> GateResult:
    """Check the latest scorings of the usage log.

    Args:
        log: the whole log, columns of `LOG_SCHEMA`. A line is written when its attempt finishes, so starts may go back
            by as much as the longest call.
        round_name: the round, which decides how large a share may come from the cache.
        samples: scores wanted for each dialogue.
        now: seconds since 1970, taken after the log was read.
    """
    live_start = pl.when(_LIVE & pl.col("started").is_finite()).then("started")
    recent = _compared(log).tail(thresholds.last)
    # The latest start of a live call before each line. Cache look-ups are left out: they take no time, so any wait for
    # the log's lock would look like time going back. Only recent scorings count, so that a clock that was once ahead
    # is forgotten together with the scorings of that time.
    recent = recent.with_columns(latest=live_start.cum_max().forward_fill().shift(1))
    begins = now - 3600.0 * _MAX_AGE_HOURS
    longest = pl.col("latency_ms").filter(_LIVE & pl.col("latency_ms").is_finite()).max().fill_null(0.0)
    recent = recent.with_columns(
        goes_back=(pl.col("started") + _MS * (pl.col("latency_ms") + longest) < pl.col("latest")).fill_null(False),
        ahead=~(pl.col("started") <= now).fill_null(False),
    )
    fresh = recent.filter(~(pl.col("started") < begins).fill_null(False))
    checks = [
        above(
            f"scorings of the last {_MAX_AGE_HOURS} hours",
            fresh.height,
            0,
            _no_recent_advice(recent, fresh),
        ),
        *_faults(recent, _COPIED),
    ]
    # Without evidence there is nothing more to check, and the check above fails.
    if fresh.height:
        checks += [
            *_faults(fresh, _FAKED),
            *_sources(fresh, round_name, thresholds),
            *_latencies(fresh.filter(_LIVE)),
            *_replies(fresh.filter(_LIVE), samples),
        ]
    failed = {check.name for check in checks if not check.passed}
    rows = [
        row
        for lines, faults in ((recent, _COPIED), (fresh, _FAKED))
        for fault in faults
        if fault.name in failed
        for row in offenders(lines.filter(fault.is_so).select("seq", "run_id", "dialogue", id="attempt_id"), fault.name)
    ]
    return GateResult(_NAME, (*checks, *_figures(log, recent, fresh)), offenders=tuple(rows))


def _faults(lines: pl.DataFrame, faults: tuple[_Fault, ...]) -> list[Check]:
    counts = lines.select(fault.is_so.sum().cast(pl.Int64).alias(fault.name) for fault in faults).row(0)
    return [equal(fault.name, count, 0, fault.advice) for fault, count in zip(faults, counts, strict=True)]


def _compared(log: pl.DataFrame) -> pl.DataFrame:
    """Return the scorings in order, each with how often its identifiers and timings occur in the whole log."""
    return (
        log.sort("seq")
        .with_columns(attempt_uses=pl.len().over("attempt_id"))
        .filter(pl.col("outcome").is_in(SCORINGS))
        .with_columns(
            request_uses=pl.len().over("outcome", "request_id"),
            timing_uses=pl.max_horizontal(
                pl.len().over("outcome", "started", "latency_ms"),
                pl.len().over("outcome", "dialogue", "reply_sha256", "latency_ms"),
            ),
        )
    )


def _no_recent_advice(recent: pl.DataFrame, fresh: pl.DataFrame) -> str:
    if fresh.height:
        return ""
    if not recent.height:
        return "the usage log has no scorings, so nothing shows that the judge was ever asked: score some dialogues"
    return f"all of the last {recent.height} scorings are older and say nothing about today's judge: score again"


def _sources(fresh: pl.DataFrame, round_name: Round, thresholds: AntiSimulationGate) -> list[Check]:
    live = fresh.filter(_LIVE)
    return [
        above("live scorings", live.height, 0, "every score came from the cache: score dialogues that are not in it"),
        at_least(
            "billed scorings", live.filter(_BILLED).height, thresholds.min_billable,
            "score with a provider that bills; the local rubric and the cache are free",
        ),
        below(
            "share from the cache", 1.0 - live.height / fresh.height, thresholds.cache_hit_lt[round_name],
            "score dialogues that are not in the cache",
        ),
    ]  # fmt: skip


def _latencies(live: pl.DataFrame) -> list[Check]:
    """Check the spread of all live latencies, and of their middle half, which a few outliers cannot widen."""
    latency = pl.col("latency_ms")
    middle = latency.quantile(0.75, "linear") - latency.quantile(0.25, "linear")
    whole, half = live.select(whole=latency.std() / latency.mean(), half=middle / latency.median()).row(0)
    advice = (
        "calls that all take the same time come from a timer, not a provider: find out what answers in its place"
        if live.height >= 2
        else f"{live.height} live scorings show no spread: score more dialogues that are not in the cache"
    )
    return [
        at_least("latency, sd / mean", number(whole), _MIN_LATENCY_SPREAD, advice),
        at_least("latency, middle half / median", number(half), _MIN_LATENCY_SPREAD, advice),
    ]


def _replies(live: pl.DataFrame, samples: int) -> list[Check]:
    """Check that random samples of one dialogue differ, and that each dialogue gets its own replies."""
    shared = live.select((pl.col("dialogue").n_unique().over("reply_sha256") > 1).mean()).item()
    across = at_most(
        "replies that another dialogue got too, share", number(shared) if live.height else 0.0,
        MAX_IDENTICAL,
        "the judge replies the same about different dialogues: it does not read them",
    )  # fmt: skip
    name = "dialogues with identical replies, share"
    warm = live.filter(_WARM)
    if samples < 2:
        return [info(name, "not measurable: judge.samples is 1, so no two replies can be compared"), across]
    if not warm.height:
        return [info(name, "not measurable: no live reply was sampled at a temperature above 0"), across]
    groups = warm.group_by("run_id", "dialogue", "model").agg(
        replies=pl.len(), different=pl.col("reply_sha256").n_unique()
    )
    repeated = groups.filter(pl.col("replies") >= 2)
    advice = (
        "samples at a temperature above 0 are identical: one reply was used for all of them, or the server "
        "ignores the temperature (judge.sampling.temperature)"
        if repeated.height
        else "no dialogue has two live replies to compare: score dialogues that are not in the cache, all samples"
    )
    identical = number(repeated.select((pl.col("different") == 1).mean()).item())
    return [at_most(name, identical, MAX_IDENTICAL, advice), across]


def _figures(log: pl.DataFrame, recent: pl.DataFrame, fresh: pl.DataFrame) -> list[Check]:
    live = fresh.filter(_LIVE)
    unpriced = live.filter(_BILLED, pl.col("cost_usd").is_null()).height
    return [
        info("lines in the log", log.height),
        info("scorings read", recent.height),
        info("of these, live", live.height),
        info("of these, from the cache", fresh.height - live.height),
        info("of these, too old to count", recent.height - fresh.height),
        info("runs", fresh["run_id"].n_unique()),
        info("model versions", ", ".join(model or "(unnamed)" for model in live["model"].unique().sort())),
        info("cost of these, USD", "unknown: set judge.prices" if unpriced else float(live["cost_usd"].sum())),
    ]


def _judge(evidence: Evidence, number: int) -> GateResult:
    """Check the latest scorings of the configured judge."""
    config = evidence.run.config
    with existing_store(evidence.run) as store:
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


SPEC = GateSpec(
    _NAME, "are the scores real", ("judge_spec",), _judge, reads_world=True, looks_at=("judge_probe",), on_score=True
)
