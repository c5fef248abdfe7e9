"""Every reply that was paid for, and the usage log, in one SQLite file.

A reply and its line are written together or not at all, whatever kills the process. An attempt is noted before it is
sent. What a dead process had under way is found by its lock, which the kernel frees, and becomes a line of the log: it
may have been billed. Several processes may use one store; nobody asks what another one is asking.

What was paid for is committed and synced by itself, attempt by attempt: grouped, or with SQLite syncing at checkpoints
alone (`synchronous = NORMAL`), a kill or a power cut would lose replies that somebody has billed. Where nobody is
billed a lost score costs the millisecond that computes it again, and syncing costs ten times that; so `together` makes
one transaction of many. It is the same transaction with the same order of table, file and commit, only longer: after a
kill inside it the store is what it was before it, log and file included, and nothing of it is half there.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson
import polars as pl
from filelock import FileLock, Timeout

from rc1_lib.errors import RC1Error
from rc1_lib.scoring import ledger
from rc1_lib.scoring.usage_lines import ANSWERED, AttemptOutcome, Line

DAY_S = 86_400.0
_BUSY_S = 60.0
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS replies (ask_key, model, stored, spec, dialogue, sample, outcome, text, scores, detail,"
    " request_id, reply_sha256, PRIMARY KEY (ask_key, model)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS dialogues (sha256 PRIMARY KEY, messages) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS endpoints (endpoint PRIMARY KEY, model, seen) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS sent (attempt_id PRIMARY KEY, ask_key, run_id, line) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS sent_by_ask ON sent (ask_key)",
    "CREATE TABLE IF NOT EXISTS identity (one INTEGER PRIMARY KEY CHECK (one = 1), id)",
    "INSERT OR IGNORE INTO identity VALUES (1, lower(hex(randomblob(16))))",
    *ledger.SCHEMA,
)
_REPLY = "ask_key, model, stored, spec, dialogue, sample, outcome, text, scores, detail, request_id, reply_sha256"


@dataclass(frozen=True, slots=True)
class Reply:
    """One stored reply.

    Attributes:
        ask_key: what was asked.
        model: the version that answered.
        stored: when, seconds since 1970.
        spec: version of the instructions.
        dialogue: SHA-256 of the dialogue.
        sample: which of the K samples.
        outcome: `ok`, or why it holds no scores.
        text: what the model wrote, secrets masked.
        scores: by dimension, None where the reply holds none.
        detail: why there are none.
        request_id: the provider's id of it.
        reply_sha256: of the text.
    """

    ask_key: str
    model: str
    stored: float
    spec: str
    dialogue: str
    sample: int
    outcome: AttemptOutcome
    text: str
    scores: dict[str, float] | None
    detail: str
    request_id: str
    reply_sha256: str


class Busy:
    """Another process is asking for this very reply."""


class Store:
    """The replies and the usage log of one workspace. Methods may be called from any thread."""

    def __init__(self, path: Path, *, ttl_days: float, clock: Callable[[], float] = time.time) -> None:
        """Open the store, make it when it is not there, and account for what dead processes had under way.

        Args:
            path: the SQLite file; the log's plain file lies beside it.
            ttl_days: for how long a reply counts.
            clock: seconds since 1970.

        Raises:
            RC1Error: when the file is no store of this version.
        """
        self.path = path
        self.mirror = path.with_name(f"{path.name}.usage.jsonl")
        self.run_id = uuid.uuid4().hex
        self._ttl_s = ttl_days * DAY_S
        self._clock = clock
        self._lock = threading.RLock()
        self._runs = path.with_name(f"{path.name}.runs")
        self._unwritten: list[bytes] = []
        with self._sound():
            self._runs.mkdir(parents=True, exist_ok=True)
            self._alive = FileLock(self._lock_path(self.run_id))
            self._alive.acquire()
            try:
                self._db = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
                self._prepare()
                self.id = str(self._db.execute("SELECT id FROM identity").fetchone()[0])
                self.account_for_the_dead()
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

    def begin(self, line: Line, *, endpoint: str, fresh: bool, bad_attempts: int = 1) -> Reply | Busy | None:
        """Note that an attempt is about to be sent.

        Args:
            line: what is known of it now.
            endpoint: whom it is sent to. The replies of the version that last answered there count, whichever process
                it answered: a process that has had no answer yet does not ask again for what another one has just got.
            fresh: ask even where a reply is stored or on its way.
            bad_attempts: how many replies that cannot be read have to have come before the last of them counts.

        Returns:
            None when it may be sent; the reply that another process got meanwhile; or `Busy`.
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
                others = self._db.execute(
                    "SELECT DISTINCT run_id FROM sent WHERE ask_key = ? AND run_id != ?", (line.ask_key, self.run_id)
                ).fetchall()
                if any(not self._bury(run_id) for (run_id,) in others):
                    return Busy()
            self._db.execute(
                "INSERT INTO sent VALUES (?, ?, ?, ?)",
                (line.attempt_id, line.ask_key, self.run_id, orjson.dumps(asdict(line))),
            )
            return None

    def is_under_way(self, ask_key: str) -> bool:
        """Whether a live process other than this run has an attempt at this reply under way."""
        with self._reading():
            others = self._db.execute(
                "SELECT DISTINCT run_id FROM sent WHERE ask_key = ? AND run_id != ?", (ask_key, self.run_id)
            ).fetchall()
        return any(self._is_alive(run_id) for (run_id,) in others)

    def end(self, line: Line, *, endpoint: str, text: str = "") -> None:
        """Write how an attempt ended; a reply that was received is stored with it.

        Args:
            line: the whole line.
            endpoint: whom it was sent to.
            text: the reply's text, where a model replied.
        """
        with self._writing():
            self._db.execute("DELETE FROM sent WHERE attempt_id = ?", (line.attempt_id,))
            self._enter([line])
            if line.outcome not in ANSWERED:
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
            self._db.execute("INSERT OR REPLACE INTO endpoints VALUES (?, ?, ?)", (endpoint, line.model, when))

    def replayed(self, lines: Sequence[Line]) -> None:
        """Write the lines of scores that came from the store."""
        if lines:
            with self._writing():
                self._enter(lines)

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

    def account_for_the_dead(self) -> int:
        """Turn what dead processes had under way into lines of the log; how many there were."""
        with self._writing():
            before = self._count("sent")
            for (run_id,) in self._db.execute("SELECT DISTINCT run_id FROM sent WHERE run_id != ?", (self.run_id,)):
                self._bury(run_id)
            return before - self._count("sent")

    # ---- the log ----

    def log(self, run_id: str | None = None) -> pl.DataFrame:
        """The usage log, or one run's lines of it, with the columns of `LOG_SCHEMA`."""
        with self._reading():
            return ledger.read(self._db, "WHERE run_id = ?" if run_id else "", (run_id,) if run_id else ())

    def damage(self) -> str:
        """What is wrong with the usage log, in a sentence; empty when nothing is."""
        with self._writing():  # nobody writes meanwhile, so table and file are of one moment
            return ledger.damage(self._db, self.mirror) or self._unfounded()

    def _unfounded(self) -> str:
        """Stored scores that no line of the log gave, in a sentence: the chain covers the lines, and so the scores."""
        found = self._db.execute(
            "SELECT count(*) FROM replies WHERE scores IS NOT NULL AND NOT EXISTS (SELECT 1 FROM log WHERE "
            "log.ask_key = replies.ask_key AND log.outcome = ? AND log.scores = replies.scores)",
            (AttemptOutcome.OK.value,),
        ).fetchone()[0]
        return f"{found} stored scores are not those that the usage log tells of: the store was edited" if found else ""

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
            if version not in (0, _VERSION):
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
            alone, before = not self._db.in_transaction, len(self._unwritten)
            self._db.execute("BEGIN IMMEDIATE" if alone else "SAVEPOINT part")
            try:
                yield
                if alone and self._unwritten:
                    ledger.write(self._db, self.mirror, b"".join(self._unwritten))
                self._db.execute("COMMIT" if alone else "RELEASE part")
                if alone:
                    self._unwritten.clear()
            except BaseException:
                self._take_back(alone, before)
                raise

    def _take_back(self, alone: bool, before: int) -> None:
        whole = not self._db.in_transaction  # a full disk makes SQLite take back everything by itself
        del self._unwritten[0 if whole else before :]
        if not whole:
            for statement in ("ROLLBACK",) if alone else ("ROLLBACK TO part", "RELEASE part"):
                self._db.execute(statement)

    def _enter(self, lines: Sequence[Line]) -> None:
        self._unwritten.append(ledger.append(self._db, lines))

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

    def _bury(self, run_id: str) -> bool:
        """Write the lines of a dead run's attempts; False when it is alive. Inside a transaction."""
        lock = FileLock(self._lock_path(run_id))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return False
        try:
            self._enter_unfinished(run_id)
        finally:
            lock.release()
            self._lock_path(run_id).unlink(missing_ok=True)
        return True

    def _enter_unfinished(self, run_id: str) -> None:
        rows = self._db.execute("SELECT line FROM sent WHERE run_id = ?", (run_id,)).fetchall()
        self._enter([_interrupted(orjson.loads(line)) for (line,) in rows])
        self._db.execute("DELETE FROM sent WHERE run_id = ?", (run_id,))

    def _lock_path(self, run_id: str) -> Path:
        return self._runs / f"{run_id}.lock"

    def _oldest(self) -> float:
        return self._clock() - self._ttl_s

    def _count(self, table: str) -> int:
        return int(self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


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
