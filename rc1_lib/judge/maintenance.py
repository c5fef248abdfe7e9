"""Maintain the store of replies: survey it, add up what was paid, and ask again for replies without scores."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from rc1_lib.config.judge import STORE_PATH
from rc1_lib.errors import RC1Error
from rc1_lib.judge.budget import Spending
from rc1_lib.judge.calls import SCORINGS, AttemptOutcome, Reply
from rc1_lib.judge.judge import Judge, open_store
from rc1_lib.judge.prompt import read_spec, write_ask
from rc1_lib.judge.providers import endpoint
from rc1_lib.judge.results import Judged, SampleRequest
from rc1_lib.judge.store import DAY_S, LOG_SCHEMA, Store
from rc1_lib.records import FunctionCall, Message, ToolCall
from rc1_lib.run import Run

_CONTENTS = {
    "spec": pl.String, "model": pl.String, "outcome": pl.String, "stored": pl.Float64, "expired": pl.Boolean,
}  # fmt: skip
_HIT = pl.col("outcome") == AttemptOutcome.HIT


@contextmanager
def existing_store(run: Run) -> Iterator[Store | None]:
    """Open the run's store if it exists; never create it."""
    if not store_path(run).is_file():
        yield None
        return
    with open_store(run) as store:
        yield store


def store_path(run: Run) -> Path:
    """Return the path of the run's store, which may not exist."""
    return run.workspace.path(STORE_PATH)


def survey(run: Run) -> dict[str, Any]:
    """Summarize the store; all zeros if it does not exist yet.

    Returns:
        JSON-ready: `path, exists, bytes`; `replies`, one record per instructions, model
        and outcome with `replies, expired, oldest_days, newest_days`; `attempts`, one record per outcome with `lines,
        retries, tokens_in, tokens_out, usd, cost_unknown`; their sums as `total`; `replays`, the number of scores from
        the store; `hit_rate`, the replays' share of all scores, None without scores; and `others`, all other stores
        (such as the attack's, the baseline's, a training's) with `path, calls, usd, cost_unknown`. `usd` sums the known
        costs, at the prices configured at the time; `cost_unknown` counts attempts that may have been billed. `skipped`
        lists other stores that cannot be read, with `path, why`: an old one may have been moved aside.
    """
    others, skipped = _other_stores(run)
    size = _bytes(run)
    with existing_store(run) as store:
        exists = store is not None
        contents = pl.DataFrame(schema=_CONTENTS) if store is None else store.contents()
        log = pl.DataFrame(schema=LOG_SCHEMA) if store is None else store.log()
    attempts = log.filter(~_HIT)
    by_outcome = attempts.group_by("outcome").agg(_SUMS).sort("lines", "outcome", descending=[True, False])
    replays, scores = int(log.select(_HIT.sum()).item()), int(log["outcome"].is_in(SCORINGS).sum())
    return {
        "path": run.workspace.name(store_path(run)),
        "exists": exists,
        "bytes": size,
        "replies": _replies(contents, time.time()).to_dicts(),
        "attempts": by_outcome.to_dicts(),
        "total": attempts.select(_SUMS).to_dicts()[0],
        "replays": replays,
        "hit_rate": replays / scores if scores else None,
        "others": others,
        "skipped": skipped,
    }


def _other_stores(run: Run) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Sum up calls and costs in all other stores (the attack's, the baseline's, a training's); list the unreadable."""
    found: list[dict[str, Any]] = []

    def add(where: str, store: Store) -> None:
        sums = store.log().filter(~_HIT).select(_SUMS).to_dicts()[0]
        found.append({"path": where, "calls": sums["lines"], "usd": sums["usd"], "cost_unknown": sums["cost_unknown"]})

    return found, _each_other_store(run, add)


def _each_other_store(run: Run, look: Callable[[str, Store], None]) -> list[dict[str, str]]:
    """Look at all stores of the judge but the run's own; return those that cannot be read, with the reason."""
    own, skipped = store_path(run), []
    for path in sorted(set(own.parent.rglob(f"*{own.suffix}")) - {own}):
        where = run.workspace.name(path)
        try:
            with open_store(run, where) as store:
                look(where, store)
        except RC1Error as error:
            skipped.append({"path": where, "why": str(error)})
    return skipped


_SUMS = (
    pl.len().cast(pl.Int64).alias("lines"),
    (pl.col("attempt") > 1).sum().cast(pl.Int64).alias("retries"),
    pl.col("tokens_in").sum(),
    pl.col("tokens_out").sum(),
    pl.col("cost_usd").sum().alias("usd"),
    pl.col("cost_usd").is_null().sum().cast(pl.Int64).alias("cost_unknown"),
)


def forget_replies(run: Run, spec: str) -> tuple[int, list[str], list[dict[str, str]]]:
    """Delete the replies to one version of the instructions from every store; their logs keep their lines.

    Returns:
        The number of deleted replies, the versions for which there were replies, and the other stores that cannot be
        read, as `survey` lists them.

    Raises:
        RC1Error: when the run's own store cannot be read; nothing is deleted then.
    """
    deleted = 0
    specs: set[str] = set()

    def forget(_: str, store: Store) -> None:
        nonlocal deleted
        specs.update(store.contents()["spec"].unique())
        deleted += store.invalidate(spec)

    with existing_store(run) as store:
        if store is not None:
            forget("", store)
    skipped = _each_other_store(run, forget)
    return deleted, sorted(specs), skipped


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of asking again for bad replies.

    Attributes:
        asked: bad replies of the judge as configured now.
        fixed: how many of them now have scores.
        others: bad replies under other settings or another model version, by instructions and model; left as they are.
        judged: the judge's run; None if there was nothing to ask.
    """

    asked: int
    fixed: int
    others: list[dict[str, Any]]
    judged: Judged | None

    @property
    def left(self) -> int:
        """The number of replies still bad."""
        return self.asked - self.fixed


def replay_bad(judge: Judge) -> Replay:
    """Ask again for stored replies without scores that the judge, as configured now, would use.

    A good reply replaces the bad one in the store; another bad reply or a failed call changes nothing.

    Raises:
        ConfigError: if the provider cannot be opened with these settings.
    """
    known = judge.store.model_of(endpoint(judge.config))
    bad = judge.store.bad()
    # Replies of an earlier model version no longer count, so asking again would waste money.
    wanted = [
        found for reply in bad if known is not None and reply.model == known[0] and (found := _as_request(judge, reply))
    ]
    keys = {request.key for request in wanted}
    others = _others([reply for reply in bad if reply.ask_key not in keys or known is None or reply.model != known[0]])
    if not wanted:
        return Replay(0, 0, others, None)
    names = list(dict.fromkeys(request.dialogue for request in wanted))
    judged = asyncio.run(judge.get(names, wanted, fresh=True))
    return Replay(len(wanted), int((judged.replies["outcome"] == AttemptOutcome.OK).sum()), others, judged)


def _as_request(judge: Judge, reply: Reply) -> SampleRequest | None:
    """Return the request that would get this reply today; None if today's settings ask something else."""
    if reply.sample >= judge.config.samples or judge.key(reply.dialogue, reply.sample) != reply.ask_key:
        return None
    messages = judge.store.dialogue(reply.dialogue)
    return None if messages is None else SampleRequest(reply.ask_key, reply.dialogue, as_asked(messages), reply.sample)


def as_asked(messages: list[dict[str, Any]]) -> list[Message]:
    """Restore the chat format's wrapping of tool calls, which stored dialogues lack."""
    return [
        cast("Message", {**message, "tool_calls": [_wrapped(call) for call in message["tool_calls"]]})
        if "tool_calls" in message
        else cast("Message", message)
        for message in messages
    ]


def _wrapped(call: FunctionCall) -> ToolCall:
    return {"type": "function", "function": call}


def _others(replies: list[Reply]) -> list[dict[str, Any]]:
    frame = pl.DataFrame(
        {"spec": [reply.spec for reply in replies], "model": [reply.model for reply in replies]},
        schema={"spec": pl.String, "model": pl.String},
    )
    counts = frame.group_by("spec", "model").agg(replies=pl.len().cast(pl.Int64))
    return counts.sort("replies", "spec", "model", descending=[True, False, False]).to_dicts()


def _replies(contents: pl.DataFrame, now: float) -> pl.DataFrame:
    return (
        contents.group_by("spec", "model", "outcome")
        .agg(
            replies=pl.len().cast(pl.Int64),
            expired=pl.col("expired").sum().cast(pl.Int64),
            oldest_days=(now - pl.col("stored").min()) / DAY_S,
            newest_days=(now - pl.col("stored").max()) / DAY_S,
        )
        .sort("spec", "model", "outcome")
    )


def _bytes(run: Run) -> int:
    """Return the size of the database, including SQLite's write-ahead log."""
    path = store_path(run)
    files = (path, Path(f"{path}-wal"), Path(f"{path}-shm"))
    return sum(file.stat().st_size for file in files if file.is_file())


@dataclass(frozen=True, slots=True)
class Paid:
    """Calls and their cost.

    Attributes:
        usd: their cost in USD: the known cost, or the most that a call of unknown cost can have cost.
    """

    calls: int = 0
    usd: float = 0.0


def paid_in(run: Run, where: str, runs: Collection[str] | None = None) -> Paid:
    """Add up what a store's usage log shows as paid, counting as the budget does.

    Args:
        run: gives judge, prices and instructions.
        where: path of the store, relative to the workspace; a missing file means that nothing was paid.
        runs: ids of the judge runs to count; default: all.

    Raises:
        RC1Error: if the file is not a store, or the instructions cannot be read.
    """
    if not run.workspace.path(where).exists():
        return Paid()
    with open_store(run, where) as store:
        log = store.log().filter(pl.col("outcome") != AttemptOutcome.HIT.value)
        if runs is not None:
            log = log.filter(pl.col("run_id").is_in(list(runs)))
        unknown = log.filter(pl.col("cost_usd").is_null())
        return Paid(log.height, float(log["cost_usd"].sum()) + _upper_bound(run, store, unknown))


def _upper_bound(run: Run, store: Store, lines: pl.DataFrame) -> float:
    if lines.is_empty():
        return 0.0
    config, spec = run.config.judge, read_spec(run)
    spending, total = Spending(config.budget, config.prices), 0.0
    for dialogue, sample in lines.select("dialogue", "sample").iter_rows():
        messages = store.dialogue(dialogue)
        assert messages is not None, "a dialogue is stored before the first call about it"
        total += spending.most(write_ask(spec, config.sampling, as_asked(messages), sample))
    return total
