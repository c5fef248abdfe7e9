"""Every reply that was paid for, and the usage log, in one SQLite file.

A reply and its line are written together or not at all, whatever kills the process. An attempt is noted before it is
sent. The lock of a dead process is freed by the kernel, and what it had under way becomes a line of the log: it may
have been billed. Several processes may use one store; nobody asks what another one is asking.

What was paid for is committed and synced attempt by attempt: grouped, or with SQLite syncing at checkpoints alone
(`synchronous = NORMAL`), a kill or a power cut would lose replies that somebody has billed. Where nobody is billed a
lost score costs the millisecond that computes it again, and a sync costs ten times that; so `together` makes one
transaction of many.

The log is a hash chain: each line holds the hash of the one before. The chain shows that a line was changed, taken out
or put in. It is no signature: whoever can write the workspace can also compute a new chain. The provider's own records
of the request ids are what an outsider can check it against.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import polars as pl
from filelock import FileLock, Timeout

from rc1_lib.errors import RC1Error
from rc1_lib.judge.calls import ANSWERED, AttemptOutcome, Line, Reply

DAY_S = 86_400.0
_BUSY_S = 60.0
_VERSION = 2
"""Version 1 also wrote the log into a plain file next to the store; its tables are the same."""
_GENESIS = "0" * 64
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
_COLUMNS = tuple(LOG_SCHEMA)
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (ask_key, model, stored, spec, dialogue, sample, outcome, text, scores, detail,"
    " request_id, reply_sha256, PRIMARY KEY (ask_key, model)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS dialogues (sha256 PRIMARY KEY, messages) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS endpoints (endpoint PRIMARY KEY, model, seen) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS sent (attempt_id PRIMARY KEY, ask_key, run_id, line) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS sent_by_ask ON sent (ask_key)",
    "CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), id)",
    "INSERT OR IGNORE INTO identity VALUES (1, lower(hex(randomblob(16))))",
    f"CREATE TABLE IF NOT EXISTS log ({', '.join(_COLUMNS)}, hash, PRIMARY KEY (seq)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS log_by_ask ON log (ask_key)",
    "CREATE TABLE IF NOT EXISTS anchor (one INTEGER PRIMARY KEY CHECK (one = 1), lines, hash)",
    f"INSERT OR IGNORE INTO anchor (one, lines, hash) VALUES (1, 0, '{_GENESIS}')",
)
_REPLY = "ask_key, model, stored, spec, dialogue, sample, outcome, text, scores, detail, request_id, reply_sha256"


class InFlight:
    """Another process is asking for this very reply."""


class Store:
    """The replies and the usage log of one workspace. Methods may be called from any thread."""

    def __init__(self, path: Path, *, ttl_days: float, clock: Callable[[], float] = time.time) -> None:
        """Open the store, make it when it is not there, and account for what dead processes had under way.

        Args:
            path: the SQLite file.
            ttl_days: for how long a reply counts.
            clock: seconds since 1970.

        Raises:
            RC1Error: when the file is no store of this version.
        """
        self.path = path
        self.run_id = uuid.uuid4().hex
        self._ttl_s = ttl_days * DAY_S
        self._clock = clock
        self._lock = threading.RLock()
        self._runs = path.with_name(f"{path.name}.runs")
        with self._sound():
            self._runs.mkdir(parents=True, exist_ok=True)
            self._alive = FileLock(self._lock_path(self.run_id))
            self._alive.acquire()
            try:
                self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
                self._prepare()
                self.id = str(self._db.execute("SELECT id FROM identity").fetchone()[0])
                with self._writing():
                    self._living()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. What was written stays; nothing is buffered."""
        with self._lock:
            if hasattr(self, "_db"):
                with suppress(RC1Error, sqlite3.Error):  # whoever comes next does it, if it cannot be done now
                    self._give_up()
                self._db.close()
            self._alive.release()
            self._lock_path(self.run_id).unlink(missing_ok=True)

    def _give_up(self) -> None:
        """Enter what this run began and could not finish: it ends here."""
        if self._db.execute("SELECT count(*) FROM sent WHERE run_id = ?", (self.run_id,)).fetchone()[0]:
            with self._writing():
                self._enter_unfinished(self.run_id)

    def now(self) -> float:
        """Seconds since 1970 by the clock that ages replies."""
        return self._clock()

    # ---- replies ----

    def find(self, ask_keys: Sequence[str], model: str, *, bad_attempts: int = 1) -> dict[str, Reply]:
        """The stored replies of `model` that still count, by ask key."""
        with self._reading():
            self._db.execute("CREATE TEMP TABLE IF NOT EXISTS wanted (ask_key PRIMARY KEY) WITHOUT ROWID")
            self._db.execute("DELETE FROM wanted")
            self._db.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", ((key,) for key in ask_keys))
            rows = self._db.execute(
                f"SELECT {_REPLY} FROM replies NATURAL JOIN wanted WHERE model = ? AND stored > ?",
                (model, self._oldest()),
            ).fetchall()
            found = [_reply(row) for row in rows]
            return {reply.ask_key: reply for reply in found if not self._is_worth_asking_again(reply, bad_attempts)}

    def model_of(self, endpoint: str) -> tuple[str, float] | None:
        """The model version that an endpoint last answered with, and when (seconds since 1970)."""
        with self._reading():
            row = self._db.execute("SELECT model, seen FROM endpoints WHERE endpoint = ?", (endpoint,)).fetchone()
        return None if row is None else (row[0], row[1])

    def replies_so_far(self, ask_key: str) -> int:
        """How many replies to this ask were ever received: a further one needs an idempotency key of its own."""
        marks = ", ".join("?" * len(ANSWERED))
        with self._reading():
            found = self._db.execute(
                f"SELECT count(*) FROM log WHERE ask_key = ? AND outcome IN ({marks})", (ask_key, *map(str, ANSWERED))
            ).fetchone()
        return int(found[0])

    def dialogue(self, sha256: str) -> list[dict[str, Any]] | None:
        """The messages of a dialogue that was asked about."""
        with self._reading():
            row = self._db.execute("SELECT messages FROM dialogues WHERE sha256 = ?", (sha256,)).fetchone()
        return None if row is None else list(orjson.loads(row[0]))

    # ---- attempts ----

    def remember(self, dialogues: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Keep dialogues by their SHA-256, so that a bad reply can be asked for again."""
        with self._writing():
            self._db.executemany(
                "INSERT OR IGNORE INTO dialogues VALUES (?, ?)",
                ((sha256, orjson.dumps(list(messages))) for sha256, messages in dialogues),
            )

    def begin(self, line: Line, *, endpoint: str, fresh: bool, bad_attempts: int = 1) -> Reply | InFlight | None:
        """Note that an attempt is about to be sent.

        Args:
            line: what is known of it now.
            endpoint: where it is sent. The replies of the version that last answered there count, whichever process
                it answered: a process that has had no answer yet does not ask again for what another one has just got.
            fresh: ask even where a reply is stored or on its way.
            bad_attempts: how many replies that cannot be read have to have come before the last of them counts.

        Returns:
            None when it may be sent; the reply that another process got meanwhile; or `InFlight`.
        """
        with self._writing():
            if not fresh:
                rows = self._db.execute(
                    f"SELECT {_REPLY} FROM replies WHERE ask_key = ? AND stored > ? "
                    "AND model = (SELECT model FROM endpoints WHERE endpoint = ?)",
                    (line.ask_key, self._oldest(), endpoint),
                ).fetchall()
                if rows and not self._is_worth_asking_again(reply := _reply(rows[0]), bad_attempts):
                    return reply
                if self._living(line.ask_key):
                    return InFlight()
            self._db.execute(
                "INSERT INTO sent VALUES (?, ?, ?, ?)",
                (line.attempt_id, line.ask_key, self.run_id, orjson.dumps(asdict(line))),
            )
            return None

    def is_under_way(self, ask_key: str) -> bool:
        """Whether a live process other than this run has an attempt at this reply under way."""
        with self._writing():
            return bool(self._living(ask_key))

    def end(self, line: Line, *, endpoint: str, text: str = "") -> None:
        """Write how an attempt ended; a reply that was received is stored with it.

        Args:
            line: the whole line.
            endpoint: where it was sent.
            text: the reply's text, where a model replied.
        """
        with self._writing():
            self._db.execute("DELETE FROM sent WHERE attempt_id = ?", (line.attempt_id,))
            self._log([line])
            answered = line.status == 200  # a filter's refusal is a reply, and shows no version of the model
            if line.outcome not in ANSWERED or not (answered or line.model):
                return
            when = self._clock()
            scores = None if line.scores is None else orjson.dumps(dict(line.scores)).decode()
            self._db.execute(
                f"INSERT INTO replies ({_REPLY}) VALUES ({', '.join('?' * 12)}) ON CONFLICT DO UPDATE SET "
                f"{', '.join(f'{name} = excluded.{name}' for name in _REPLY.split(', ')[2:])} "
                "WHERE excluded.scores IS NOT NULL OR replies.scores IS NULL",  # bad never drives out good
                (
                    line.ask_key, line.model, when, line.spec, line.dialogue, line.sample, line.outcome.value, text,
                    scores, line.detail, line.request_id, line.reply_sha256,
                ),
            )  # fmt: skip
            if answered:
                self._db.execute("INSERT OR REPLACE INTO endpoints VALUES (?, ?, ?)", (endpoint, line.model, when))

    def replayed(self, lines: Sequence[Line]) -> None:
        """Write the lines of scores that came from the store."""
        if lines:
            with self._writing():
                self._log(lines)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit all that the block writes at its end, as one: for scores that nobody is billed for.

        Others wait meanwhile to write, so it is to be over within seconds. A part that fails takes back itself alone;
        an error that leaves the block, or a kill inside it, takes back everything.

        Raises:
            RC1Error: when it cannot be written; nothing of it is.
        """
        with self._writing():
            yield

    # ---- the log ----

    def log(self, run_id: str | None = None) -> pl.DataFrame:
        """The usage log, or one run's lines of it, with the columns of `LOG_SCHEMA`."""
        where, values = ("WHERE run_id = ?", (run_id,)) if run_id else ("", ())
        with self._reading():
            rows = self._db.execute(f"SELECT {', '.join(_COLUMNS)} FROM log {where} ORDER BY seq", values).fetchall()
        frame = pl.DataFrame(rows, schema={**LOG_SCHEMA, "billable": pl.Int64}, orient="row", strict=False)
        return frame.with_columns(pl.col("billable").cast(pl.Boolean))

    def damage(self) -> str:
        """What is wrong with the usage log, in a sentence; empty when every line is as it was written."""
        with self._writing():  # nobody writes meanwhile
            return self._broken_chain() or self._unfounded()

    def _broken_chain(self) -> str:
        last, seen = _GENESIS, 0
        try:
            for *row, kept in self._db.execute(f"SELECT {', '.join(_COLUMNS)}, hash FROM log ORDER BY seq"):
                seen += 1
                if _was_never_written(row):
                    return f"line {seen} of the usage log is not what was written: it was edited"
                last = _chained(last, row)
                if row[0] != seen or kept != last:
                    return f"line {seen} of the usage log is not what was written: it was edited, taken out or put in"
        except sqlite3.OperationalError as error:  # a text that is not UTF-8
            return f"line {seen + 1} of the usage log cannot be read, so it is not what was written: {error}"
        count, anchored = self._db.execute("SELECT lines, hash FROM anchor").fetchone()
        if (seen, last) != (count, anchored):
            return f"the usage log holds {seen} lines, but {count} were written"
        return ""

    def _unfounded(self) -> str:
        """Stored scores that no line of the log gave, in a sentence: the chain covers the lines, and so the scores."""
        found = self._db.execute(
            "SELECT count(*) FROM replies WHERE scores IS NOT NULL AND NOT EXISTS (SELECT 1 FROM log WHERE "
            "log.ask_key = replies.ask_key AND log.outcome = ? AND log.scores = replies.scores)",
            (AttemptOutcome.OK.value,),
        ).fetchone()[0]
        return f"{found} stored scores differ from the usage log: the store was edited" if found else ""

    # ---- looking after the store ----

    def invalidate(self, spec: str) -> int:
        """Forget the replies to one version of the instructions; how many there were. The log keeps its lines."""
        with self._writing():
            return self._db.execute("DELETE FROM replies WHERE spec = ?", (spec,)).rowcount

    def bad(self) -> list[Reply]:
        """The stored replies that hold no scores and have not expired."""
        with self._reading():
            rows = self._db.execute(
                f"SELECT {_REPLY} FROM replies WHERE scores IS NULL AND stored > ? ORDER BY stored", (self._oldest(),)
            ).fetchall()
            return [_reply(row) for row in rows]

    def contents(self) -> pl.DataFrame:
        """Stored replies without their texts: spec, model, outcome, stored, expired."""
        with self._reading():
            rows = self._db.execute("SELECT spec, model, outcome, stored, stored <= ? FROM replies", (self._oldest(),))
            return pl.DataFrame(
                rows.fetchall(),
                schema={
                    "spec": pl.String, "model": pl.String, "outcome": pl.String, "stored": pl.Float64,
                    "expired": pl.Int64,
                },
                orient="row",
            ).with_columns(pl.col("expired").cast(pl.Boolean))  # fmt: skip

    # ---- inside ----

    def _is_worth_asking_again(self, reply: Reply, bad_attempts: int) -> bool:
        """Whether it cannot be read, and fewer than so many such replies have come. The log knows, whoever died."""
        if reply.outcome is not AttemptOutcome.BAD_REPLY or bad_attempts <= 1:
            return False
        received = self._db.execute(
            "SELECT count(*) FROM log WHERE ask_key = ? AND model = ? AND outcome = ? AND started > ?",
            (reply.ask_key, reply.model, AttemptOutcome.BAD_REPLY.value, self._oldest()),
        ).fetchone()[0]
        return int(received) < bad_attempts

    def _prepare(self) -> None:
        self._log_ahead()
        self._db.execute("PRAGMA synchronous = FULL")  # what was paid for outlives a power cut as well
        with self._writing():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if not 0 <= version <= _VERSION:
                raise RC1Error(
                    f"{self.path}: is a score store of version {version}, this program reads {_VERSION}; "
                    f"move it away, or use the program that wrote it"
                )
            for statement in _SCHEMA:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def _log_ahead(self) -> None:
        """Let readers and a writer work side by side. SQLite does not wait for others who ask for it at that moment."""
        until = time.monotonic() + _BUSY_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(0.01)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction, or within another one a part of it that can be taken back by itself."""
        with self._reading():
            alone = not self._db.in_transaction
            self._db.execute("BEGIN IMMEDIATE" if alone else "SAVEPOINT part")
            try:
                yield
                self._db.execute("COMMIT" if alone else "RELEASE part")
            except BaseException:
                if self._db.in_transaction:  # a full disk makes SQLite take back everything by itself
                    for statement in ("ROLLBACK",) if alone else ("ROLLBACK TO part", "RELEASE part"):
                        self._db.execute(statement)
                raise

    def _log(self, lines: Sequence[Line]) -> None:
        """Add lines to the chain, inside a transaction."""
        count, last = self._db.execute("SELECT lines, hash FROM anchor").fetchone()
        rows = []
        for seq, line in enumerate(lines, count + 1):
            row = _row(seq, line)
            last = _chained(last, row)
            rows.append((*row, last))
        self._db.executemany(f"INSERT INTO log VALUES ({', '.join('?' * (len(_COLUMNS) + 1))})", rows)
        self._db.execute("UPDATE anchor SET lines = ?, hash = ?", (count + len(rows), last))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, self._sound():
            yield

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Turn what a damaged, locked or full disk makes of a store into a sentence."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise RC1Error(
                f"{self.path}: is no score store that can be read and written ({type(error).__name__}: {what}); make "
                f"room, end what locks it, or restore it. To start a new one, move every file {self.path.name}* away "
                f"together: they hold what was paid for"
            ) from None

    def _is_alive(self, run_id: str) -> bool:
        lock = FileLock(self._lock_path(run_id))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return True
        lock.release()
        return False

    def _living(self, ask_key: str | None = None) -> list[str]:
        """Live runs other than this one that have attempts under way, at one reply or at any. Inside a transaction.

        Unfinished attempts of dead runs become lines of the log.
        """
        where, values = (" AND ask_key = ?", (self.run_id, ask_key)) if ask_key else ("", (self.run_id,))
        others = self._db.execute(f"SELECT DISTINCT run_id FROM sent WHERE run_id != ?{where}", values).fetchall()
        living = [run_id for (run_id,) in others if self._is_alive(run_id)]
        for (run_id,) in others:
            if run_id not in living:
                self._enter_unfinished(run_id)
        return living

    def _enter_unfinished(self, run_id: str) -> None:
        rows = self._db.execute("SELECT line FROM sent WHERE run_id = ?", (run_id,)).fetchall()
        self._log([_interrupted(orjson.loads(line)) for (line,) in rows])
        self._db.execute("DELETE FROM sent WHERE run_id = ?", (run_id,))
        if run_id != self.run_id:
            self._lock_path(run_id).unlink(missing_ok=True)

    def _lock_path(self, run_id: str) -> Path:
        return self._runs / f"{run_id}.lock"

    def _oldest(self) -> float:
        return self._clock() - self._ttl_s


def _interrupted(body: dict[str, Any]) -> Line:
    line = Line(**{**body, "outcome": AttemptOutcome(body["outcome"])})
    return replace(
        line, outcome=AttemptOutcome.INTERRUPTED, cost_usd=None, detail="its process died; it may have been billed"
    )


def _reply(row: Sequence[Any]) -> Reply:
    (key, model, stored, spec, dialogue, sample, outcome, text, scores, detail, request_id, sha256) = row
    found = None if scores is None else orjson.loads(scores)
    is_sound = found is None or (isinstance(found, dict) and all(_is_score(value) for value in found.values()))
    if not is_sound:
        raise ValueError(f"the stored reply {request_id or key} is not what was written")
    return Reply(
        key, model, stored, spec, dialogue, sample, AttemptOutcome(outcome), text, found, detail, request_id, sha256
    )


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0


def _row(seq: int, line: Line) -> tuple[Any, ...]:
    written = {
        "scores": None if line.scores is None else orjson.dumps(dict(line.scores)).decode(),
        "outcome": line.outcome.value,
        "billable": int(line.billable),
    }
    return (seq, *(written[name] if name in written else getattr(line, name) for name in _COLUMNS[1:]))


def _was_never_written(row: Sequence[Any]) -> bool:
    """Whether it holds what JSON cannot tell apart from nothing, or cannot hold."""
    return any(isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)) for value in row)


def _chained(previous: str, row: Sequence[Any]) -> str:
    """The row's hash, after the one before."""
    fields = dict(zip(_COLUMNS, row, strict=True))
    if type(fields["billable"]) is int and fields["billable"] in (0, 1):
        fields["billable"] = bool(fields["billable"])  # SQLite knows no booleans; anything else is an edit, left as is
    return hashlib.sha256(previous.encode() + orjson.dumps(fields)).hexdigest()
