"""Every paid reply and the usage log, in one SQLite file.

A reply and its log line are written together or not at all, even if the process is killed. An attempt is recorded
before it is sent. When a process dies, the kernel frees its lock, and its calls in flight become log lines, since they
may have been billed. Several processes may share a store; none asks what another is asking already.

Paid replies are committed and synced one by one. If they were grouped, or if SQLite synced only at checkpoints
(`synchronous = NORMAL`), a kill or a power cut would lose replies that were billed. A free score takes a millisecond to
compute again, and a sync takes ten times that; so `transaction` commits many of them at once.
"""

from __future__ import annotations

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
_VERSION = 3
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
"""The log as a table: one row per line, in order of writing (`seq` from 1); `scores` is JSON text or null."""
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
    f"CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, {', '.join(_COLUMNS[1:])})",
    "CREATE INDEX IF NOT EXISTS log_by_ask ON log (ask_key)",
)
_REPLY = "ask_key, model, stored, spec, dialogue, sample, outcome, text, scores, detail, request_id, reply_sha256"


class InFlight:
    """Another process is asking for the same reply."""


class Store:
    """The replies and the usage log of one workspace. Methods may be called from any thread."""

    def __init__(self, path: Path, *, ttl_days: float, clock: Callable[[], float] = time.time) -> None:
        """Open or create the store, and log the interrupted attempts of dead processes.

        Args:
            path: the SQLite file.
            ttl_days: days for which a reply counts.
            clock: returns seconds since 1970.

        Raises:
            RC1Error: if the file is not a store of this version, or cannot be read and written.
        """
        self.path = path
        self.run_id = uuid.uuid4().hex
        self._ttl_s = ttl_days * DAY_S
        self._clock = clock
        self._lock = threading.RLock()
        self._runs = path.with_name(f"{path.name}.runs")
        with self._readable_errors():
            self._runs.mkdir(parents=True, exist_ok=True)
            self._alive = FileLock(self._lock_path(self.run_id))
            self._alive.acquire()
            try:
                self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
                self._prepare()
                self.id = str(self._db.execute("SELECT id FROM identity").fetchone()[0])
                with self._writing():
                    self._other_live_runs()
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
                with suppress(RC1Error, sqlite3.Error):  # if this fails, the next process to open the store does it
                    self._log_unfinished()
                self._db.close()
            self._alive.release()
            self._lock_path(self.run_id).unlink(missing_ok=True)

    def _log_unfinished(self) -> None:
        """Log the attempts that this run began and did not finish."""
        if self._db.execute("SELECT count(*) FROM sent WHERE run_id = ?", (self.run_id,)).fetchone()[0]:
            with self._writing():
                self._log_interrupted(self.run_id)

    def now(self) -> float:
        """Return the time in seconds since 1970, by the clock that replies expire by."""
        return self._clock()

    # ---- replies ----

    def find(self, ask_keys: Sequence[str], model: str, *, bad_attempts: int = 1) -> dict[str, Reply]:
        """Find the stored replies of `model` that still count, by ask key.

        A reply that cannot be read counts only once `bad_attempts` of them have come.
        """
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
        """Return the model version that last answered at an endpoint, and when (seconds since 1970)."""
        with self._reading():
            row = self._db.execute("SELECT model, seen FROM endpoints WHERE endpoint = ?", (endpoint,)).fetchone()
        return None if row is None else (row[0], row[1])

    def replies_so_far(self, ask_key: str) -> int:
        """Count the replies ever received to this ask; the next one needs a new idempotency key."""
        marks = ", ".join("?" * len(ANSWERED))
        with self._reading():
            found = self._db.execute(
                f"SELECT count(*) FROM log WHERE ask_key = ? AND outcome IN ({marks})", (ask_key, *map(str, ANSWERED))
            ).fetchone()
        return int(found[0])

    def dialogue(self, sha256: str) -> list[dict[str, Any]] | None:
        """Return the messages of a dialogue that was asked about; None if it is unknown."""
        with self._reading():
            row = self._db.execute("SELECT messages FROM dialogues WHERE sha256 = ?", (sha256,)).fetchone()
        return None if row is None else list(orjson.loads(row[0]))

    # ---- attempts ----

    def remember(self, dialogues: Sequence[tuple[str, Sequence[Any]]]) -> None:
        """Store dialogues by their SHA-256, so that RC1 can ask again after a bad reply."""
        with self._writing():
            self._db.executemany(
                "INSERT OR IGNORE INTO dialogues VALUES (?, ?)",
                ((sha256, orjson.dumps(list(messages))) for sha256, messages in dialogues),
            )

    def begin(self, line: Line, *, endpoint: str, fresh: bool, bad_attempts: int = 1) -> Reply | InFlight | None:
        """Record that an attempt is about to be sent.

        Args:
            line: what is known about the attempt now.
            endpoint: where it goes. Replies of the version that last answered there count, whichever process received
                them: a process without an answer so far does not ask for what another has just received.
            fresh: ask even if a reply is stored or in flight.
            bad_attempts: number of unreadable replies after which the last one counts.

        Returns:
            None if the attempt may be sent; the reply that another process received meanwhile; or `InFlight`.
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
                if self._other_live_runs(line.ask_key):
                    return InFlight()
            self._db.execute(
                "INSERT INTO sent VALUES (?, ?, ?, ?)",
                (line.attempt_id, line.ask_key, self.run_id, orjson.dumps(asdict(line))),
            )
            return None

    def is_under_way(self, ask_key: str) -> bool:
        """Whether another live process is asking for this reply."""
        with self._writing():
            return bool(self._other_live_runs(ask_key))

    def end(self, line: Line, *, endpoint: str, text: str = "") -> None:
        """Log how an attempt ended, and store the reply if one came.

        Args:
            endpoint: where it was sent.
            text: the reply's text; empty without a reply.
        """
        with self._writing():
            self._db.execute("DELETE FROM sent WHERE attempt_id = ?", (line.attempt_id,))
            self._log([line])
            answered = line.status == 200  # a filter's refusal is a reply, but does not show the model version
            if line.outcome not in ANSWERED or not (answered or line.model):
                return
            when = self._clock()
            scores = None if line.scores is None else orjson.dumps(dict(line.scores)).decode()
            self._db.execute(
                f"INSERT INTO replies ({_REPLY}) VALUES ({', '.join('?' * 12)}) ON CONFLICT DO UPDATE SET "
                f"{', '.join(f'{name} = excluded.{name}' for name in _REPLY.split(', ')[2:])} "
                # a bad reply never replaces a good one that still counts
                "WHERE excluded.scores IS NOT NULL OR replies.scores IS NULL OR replies.stored <= ?",
                (
                    line.ask_key, line.model, when, line.spec, line.dialogue, line.sample, line.outcome.value, text,
                    scores, line.detail, line.request_id, line.reply_sha256, self._oldest(),
                ),
            )  # fmt: skip
            if answered:
                self._db.execute("INSERT OR REPLACE INTO endpoints VALUES (?, ?, ?)", (endpoint, line.model, when))

    def log_replays(self, lines: Sequence[Line]) -> None:
        """Log scores that came from the store."""
        if lines:
            with self._writing():
                self._log(lines)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that the block writes in one transaction; only for scores that are free.

        Other writers wait meanwhile, so keep the block to seconds. A failed write inside rolls back only itself; an
        error that leaves the block, or a kill inside it, rolls back everything.

        Raises:
            RC1Error: if the block cannot be written; then nothing of it is.
        """
        with self._writing():
            yield

    # ---- the log ----

    def log(self, run_id: str | None = None) -> pl.DataFrame:
        """Read the usage log, or one run's lines of it, with the columns of `LOG_SCHEMA`."""
        where, values = ("WHERE run_id = ?", (run_id,)) if run_id else ("", ())
        with self._reading():
            rows = self._db.execute(f"SELECT {', '.join(_COLUMNS)} FROM log {where} ORDER BY seq", values).fetchall()
        frame = pl.DataFrame(rows, schema={**LOG_SCHEMA, "billable": pl.Int64}, orient="row", strict=False)
        return frame.with_columns(pl.col("billable").cast(pl.Boolean))

    # ---- maintenance ----

    def invalidate(self, spec: str) -> int:
        """Delete the replies to one version of the instructions and return their number. The log keeps its lines."""
        with self._writing():
            return self._db.execute("DELETE FROM replies WHERE spec = ?", (spec,)).rowcount

    def bad(self) -> list[Reply]:
        """List the stored replies without scores that have not expired."""
        with self._reading():
            rows = self._db.execute(
                f"SELECT {_REPLY} FROM replies WHERE scores IS NULL AND stored > ? ORDER BY stored", (self._oldest(),)
            ).fetchall()
            return [_reply(row) for row in rows]

    def contents(self) -> pl.DataFrame:
        """List the stored replies without their texts: spec, model, outcome, stored, expired."""
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
        """Whether a reply is unreadable and fewer than `bad_attempts` of them have come, in any process."""
        if reply.outcome is not AttemptOutcome.BAD_REPLY or bad_attempts <= 1:
            return False
        received = self._db.execute(
            "SELECT count(*) FROM log WHERE ask_key = ? AND model = ? AND outcome = ? AND started > ?",
            (reply.ask_key, reply.model, AttemptOutcome.BAD_REPLY.value, self._oldest()),
        ).fetchone()[0]
        return int(received) < bad_attempts

    def _prepare(self) -> None:
        self._enable_wal()
        self._db.execute("PRAGMA synchronous = FULL")  # paid replies survive a power cut
        with self._writing():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise RC1Error(
                    f"{self.path}: score store has version {version}, but this program reads version {_VERSION}; "
                    f"move it away, or use the program that wrote it"
                )
            for statement in _SCHEMA:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {_VERSION}")

    def _enable_wal(self) -> None:
        """Switch to write-ahead logging, so readers can work during a write; retry, as SQLite does not wait here."""
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
        """Open a transaction or, inside another one, a savepoint."""
        with self._reading():
            alone = not self._db.in_transaction
            self._db.execute("BEGIN IMMEDIATE" if alone else "SAVEPOINT part")
            try:
                yield
                self._db.execute("COMMIT" if alone else "RELEASE part")
            except BaseException:
                if self._db.in_transaction:  # on a full disk SQLite has already rolled back
                    for statement in ("ROLLBACK",) if alone else ("ROLLBACK TO part", "RELEASE part"):
                        self._db.execute(statement)
                raise

    def _log(self, lines: Sequence[Line]) -> None:
        """Append lines. Call inside a transaction."""
        marks = ", ".join("?" * len(_COLUMNS))
        self._db.executemany(f"INSERT INTO log VALUES ({marks})", (_row(line) for line in lines))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock, self._readable_errors():
            yield

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        """Turn the errors of a damaged, locked or full store into an RC1Error."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise RC1Error(
                f"{self.path}: cannot read and write this score store ({type(error).__name__}: {what}); free disk "
                f"space, end the process that locks it, or restore it. To start a new one, move all files "
                f"{self.path.name}* away together: they hold the replies that were paid for"
            ) from None

    def _is_alive(self, run_id: str) -> bool:
        lock = FileLock(self._lock_path(run_id))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return True
        lock.release()
        return False

    def _other_live_runs(self, ask_key: str | None = None) -> list[str]:
        """List other live runs with attempts in flight, at one reply or at any. Call inside a transaction.

        Logs the unfinished attempts of dead runs as interrupted.
        """
        where, values = (" AND ask_key = ?", (self.run_id, ask_key)) if ask_key else ("", (self.run_id,))
        others = self._db.execute(f"SELECT DISTINCT run_id FROM sent WHERE run_id != ?{where}", values).fetchall()
        living = [run_id for (run_id,) in others if self._is_alive(run_id)]
        for (run_id,) in others:
            if run_id not in living:
                self._log_interrupted(run_id)
        return living

    def _log_interrupted(self, run_id: str) -> None:
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
        raise ValueError(f"the stored reply {request_id or key} was changed after it was written")
    return Reply(
        key, model, stored, spec, dialogue, sample, AttemptOutcome(outcome), text, found, detail, request_id, sha256
    )


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= 1.0


def _row(line: Line) -> tuple[Any, ...]:
    written = {
        "seq": None,  # SQLite counts
        "scores": None if line.scores is None else orjson.dumps(dict(line.scores)).decode(),
        "outcome": line.outcome.value,
        "billable": int(line.billable),
    }
    return tuple(written[name] if name in written else getattr(line, name) for name in _COLUMNS)
