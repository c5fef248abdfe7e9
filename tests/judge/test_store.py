"""The store: what it keeps and for how long; it writes whole or not at all, and contains no secret."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.judge.calls import AttemptOutcome, Line, Reply
from rc1_lib.judge.judge import open_store
from rc1_lib.judge.store import DAY_S, InFlight, Store
from tests.forks import this_interpreter
from tests.judge.bench import PLANTED, Bench, dialogues
from tests.judge_server import Behaviour, FaultKind, running

ENDPOINT = "openai http://127.0.0.1:1/v1 judge-large"
SCORES = {"answered": 0.25, "concise": 1.0}


def _line(store: Store, attempt_id: str, ask_key: str = "ask-1", **changes: Any) -> Line:
    fields: dict[str, Any] = {
        "attempt_id": attempt_id, "run_id": store.run_id, "ask_key": ask_key, "dialogue": "d" * 64, "sample": 0,
        "attempt": 1, "provider": "openai", "spec": "v1", "model_asked": "judge-large", "model": "", "temperature": 0.7,
        "outcome": AttemptOutcome.INTERRUPTED, "started": 1.5e9, "latency_ms": 0.0, "status": None, "request_id": "",
        "tokens_in": 0, "tokens_out": 0, "cost_usd": None, "billable": False, "reply_sha256": "", "scores": None,
        "detail": "",
    }  # fmt: skip
    return Line(**{**fields, **changes})


def _answer(store: Store, attempt_id: str, ask_key: str = "ask-1", **changes: Any) -> None:
    """Record one attempt from start to success, apart from `changes`."""
    assert store.begin(_line(store, attempt_id, ask_key), endpoint=ENDPOINT, fresh=True) is None
    good = {"outcome": AttemptOutcome.OK, "scores": SCORES, "model": "judge-1", "status": 200, "billable": True}
    store.end(_line(store, attempt_id, ask_key, **{**good, **changes}), endpoint=ENDPOINT, text="{}")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "scores.sqlite", ttl_days=14) as store:
        yield store


# ---- which replies count, and for how long ----


def test_replies_count_until_ttl_days(tmp_path: Path) -> None:
    now = [1.6e9]
    with Store(tmp_path / "scores.sqlite", ttl_days=14, clock=lambda: now[0]) as store:
        _answer(store, "attempt-1")
        now[0] += 14 * DAY_S - 1
        assert store.find(["ask-1"], "judge-1")["ask-1"].scores == SCORES
        assert isinstance(store.begin(_line(store, "attempt-2"), endpoint=ENDPOINT, fresh=False), Reply)
        assert store.contents()["expired"].to_list() == [False]
        now[0] += 1
        assert store.find(["ask-1"], "judge-1") == {}
        assert store.contents()["expired"].to_list() == [True]
        assert store.begin(_line(store, "attempt-3"), endpoint=ENDPOINT, fresh=False) is None


@pytest.mark.parametrize("expired", [False, True])
def test_a_refusal_replaces_a_good_reply_only_once_that_has_expired(expired: bool, tmp_path: Path) -> None:
    now = [1.6e9]
    with Store(tmp_path / "scores.sqlite", ttl_days=14, clock=lambda: now[0]) as store:
        _answer(store, "attempt-1")
        now[0] += 14 * DAY_S * expired
        _answer(store, "attempt-2", outcome=AttemptOutcome.REFUSED, scores=None)
        assert store.find(["ask-1"], "judge-1")["ask-1"].scores == (None if expired else SCORES)


def test_the_newest_model_version_applies_to_every_process_on_the_store(store: Store, tmp_path: Path) -> None:
    with Store(tmp_path / "scores.sqlite", ttl_days=14) as other:
        _answer(other, "attempt-1")
    found = store.begin(_line(store, "attempt-2"), endpoint=ENDPOINT, fresh=False)
    assert isinstance(found, Reply)
    assert found.model == "judge-1"
    assert store.begin(_line(store, "attempt-3"), endpoint="another", fresh=False) is None


def test_a_reply_that_another_process_is_requesting_is_waited_for(store: Store, tmp_path: Path) -> None:
    with Store(tmp_path / "scores.sqlite", ttl_days=14) as other:
        assert other.begin(_line(other, "attempt-1"), endpoint=ENDPOINT, fresh=False) is None
        assert isinstance(store.begin(_line(store, "attempt-2"), endpoint=ENDPOINT, fresh=False), InFlight)
        assert store.begin(_line(store, "attempt-3", "ask-2"), endpoint=ENDPOINT, fresh=False) is None
    # The other process ended without a report: its call becomes a line, and the reply may be requested.
    assert store.begin(_line(store, "attempt-4"), endpoint=ENDPOINT, fresh=False) is None
    assert store.log().select("attempt_id", "outcome").rows() == [("attempt-1", "interrupted")]


def test_paid_replies_are_synced_to_disk(store: Store) -> None:
    """A test cannot cut the power: with `FULL` (2) SQLite guarantees that a commit survives that."""
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_invalidating_drops_replies_and_keeps_their_log_lines(bench: Bench) -> None:
    with running(Behaviour(delay="zero")) as server:
        bench.score(server, dialogues(2))
        with open_store(bench.run(server.base_url)) as store:
            assert store.invalidate("v2") == 0
            assert store.invalidate("v1") == 6
            assert len(store.log()) == 6
            assert store.contents().is_empty()
        again = bench.score(server, dialogues(2))
        assert again.calls == 6
        # They have new idempotency keys, or the gateway would return the forgotten replies.
        assert len(server.stats().billed_by_key) == 12


def test_a_file_that_is_not_a_store_raises_an_error_and_leaves_no_run_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    path.write_text("this is no database, however often it is read" * 100)
    with pytest.raises(RC1Error, match=r"scores\.sqlite: .*\(DatabaseError: "):
        Store(path, ttl_days=14)
    assert list((tmp_path / "scores.sqlite.runs").iterdir()) == []


def test_a_store_of_another_version_raises_an_error(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    Store(path, ttl_days=14).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 7")
    with pytest.raises(RC1Error, match=r"scores\.sqlite: .* 7, .* 3; "):
        Store(path, ttl_days=14)
    assert list((tmp_path / "scores.sqlite.runs").iterdir()) == []


# ---- the log ----


def test_a_failed_write_leaves_neither_reply_nor_line(store: Store) -> None:
    _answer(store, "attempt-1")
    with closing(sqlite3.connect(store.path)) as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON replies BEGIN SELECT RAISE(ABORT, 'the disk is full'); END")
        with pytest.raises(RC1Error, match=r"scores\.sqlite: .*\(IntegrityError: "):
            _answer(store, "attempt-2", "ask-2")
        db.execute("DROP TRIGGER full")
    assert store.log()["attempt_id"].to_list() == ["attempt-1"]
    assert store.find(["ask-2"], "judge-1") == {}


# ---- transactions ----


def test_a_failed_write_in_a_transaction_rolls_back_only_itself(store: Store) -> None:
    with store.transaction():
        _answer(store, "attempt-1")
        with pytest.raises(RC1Error, match=r"scores\.sqlite: .*\(TypeError: "):
            store.end(_line(store, "attempt-2", "ask-2", outcome=AttemptOutcome.OK, scores={1: 2}), endpoint=ENDPOINT)
        _answer(store, "attempt-3", "ask-3")
    assert store.log()["attempt_id"].to_list() == ["attempt-1", "attempt-3"]


def write_together_and_be_killed(path: str, moment: str) -> None:
    """Write one answer, then many in a transaction, and kill this process at `moment`."""

    def kill_itself() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    store = Store(Path(path), ttl_days=14)
    _answer(store, "before", "ask-before")
    with store.transaction():
        for number in range(50):
            _answer(store, f"attempt-{number}", f"ask-{number}")
        if moment == "block":
            kill_itself()
    kill_itself()


@pytest.mark.parametrize(("moment", "kept"), [("block", 1), ("end", 51)])
def test_a_kill_leaves_all_or_none_of_a_transaction(moment: str, kept: int, tmp_path: Path) -> None:
    """A kill inside the transaction, and one after it."""
    path = tmp_path / "scores.sqlite"
    killed = this_interpreter(tmp_path / "forks").start(f"{__name__}.write_together_and_be_killed", path, moment)
    assert killed.wait() == -signal.SIGKILL, killed.read_output()
    with Store(path, ttl_days=14) as store:
        assert len(store.log()) == len(store.contents()) == kept
        for number in range(50):
            if f"ask-{number}" not in store.find([f"ask-{number}"], "judge-1"):
                _answer(store, f"again-{number}", f"ask-{number}")
        assert len(store.log()) == len(store.contents()) == 51


# ---- secrets ----


def _all_file_bytes(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_api_key_is_written_nowhere(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SCORER_API_KEY", PLANTED)
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2", "google_genai", "google_genai.models", "rc1.judge", "asyncio"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    faults = {FaultKind.RESET: 0.1, FaultKind.SERVER_ERROR: 0.1, FaultKind.BAD_JSON_REPLY: 0.1}
    with running(Behaviour(delay="zero", api_key=PLANTED, faults=faults)) as server:
        judged = [bench.score(server, dialogues(6))]
        assert judged[0].stopped == ""
        server.behaviour = Behaviour(delay="zero", api_key="sk-another")  # its 401 repeats the key that it was sent
        judged.append(bench.score(server, dialogues(9)))
        assert "HTTP 401" in judged[1].stopped
    with pytest.raises(RC1Error) as caught:
        judged[1].require(1.0)
    assert len(caplog.records) > 20
    shown = [caplog.text, *(repr(vars(record)) for record in caplog.records), repr(caught.value)]
    for one in judged:
        shown += [one.stopped, str(one.rows.to_dicts()), str(one.replies.to_dicts()), repr(one)]
    for piece in (PLANTED, PLANTED[3:], PLANTED[:16], PLANTED[-12:]):
        assert not [text for text in shown if piece in text]
        assert piece.encode() not in _all_file_bytes(bench.folder)
