"""The store: what it keeps and for how long; every edit of its log is detected, and it contains no secret."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import RC1Error
from rc1_lib.judge.calls import AttemptOutcome, Line, Reply
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.judge.store import DAY_S, InFlight, Store
from tests.forks import this_interpreter
from tests.judge.bench import PLANTED, PROVIDERS, Bench, dialogues
from tests.judge.gateway import Gateway, completion
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


def test_the_judge_requests_expired_replies_again(bench: Bench) -> None:
    now = [1.6e9]
    with running(Behaviour(delay="zero")) as server:
        run = bench.run(server.base_url)
        with Store(_store_path(bench), ttl_days=14, clock=lambda: now[0]) as store:
            judge = open_judge(run, store)
            assert judge.score(dialogues(2)).calls == 6
            now[0] += 23 * 3600
            assert judge.score(dialogues(2)).calls == 0
            now[0] += 2 * 3600  # the model version is checked again: judge.store.model_check_hours
            assert judge.score(dialogues(2)).calls == 1
            now[0] += 20 * 3600
            assert judge.score(dialogues(2)).calls == 0
            now[0] += 14 * DAY_S
            assert judge.score(dialogues(2)).calls == 6
        assert server.stats().requests == 13


def _store_path(bench: Bench) -> Path:
    bench.path.parent.mkdir(parents=True, exist_ok=True)
    return bench.path


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


def test_invalidating_drops_only_replies_to_the_named_instructions(store: Store) -> None:
    for number, spec in enumerate(("v1", "v2", "v3")):
        _answer(store, f"attempt-{number}", f"ask-{number}", spec=spec)
    assert store.invalidate("v2") == 1
    assert sorted(store.find(["ask-0", "ask-1", "ask-2"], "judge-1")) == ["ask-0", "ask-2"]


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


def test_bad_replies_are_listed_with_their_dialogues(bench: Bench) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.BAD_JSON_REPLY: 1.0})) as server:
        bench.score(server, dialogues(2))
    with open_store(bench.run("http://127.0.0.1:1/v1")) as store:
        bad = store.bad()
        assert len(bad) == 6
        assert {reply.outcome for reply in bad} == {AttemptOutcome.BAD_REPLY}
        assert all(reply.scores is None and reply.text and reply.detail for reply in bad)
        assert {str(store.dialogue(reply.dialogue)) for reply in bad} == {str(asked) for asked in dialogues(2)}


def test_a_file_that_is_not_a_store_raises_an_error_and_leaves_no_run_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    path.write_text("this is no database, however often it is read" * 100)
    with pytest.raises(RC1Error, match=r"scores\.sqlite: .*\(DatabaseError: "):
        Store(path, ttl_days=14)
    assert list((tmp_path / "scores.sqlite.runs").iterdir()) == []


@pytest.mark.parametrize("version", [2, 7])
def test_a_store_of_another_version_raises_an_error(version: int, tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    Store(path, ttl_days=14).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(RC1Error, match=rf"scores\.sqlite: .* {version}, .* 3; "):
        Store(path, ttl_days=14)
    assert list((tmp_path / "scores.sqlite.runs").iterdir()) == []


def test_many_threads_can_open_and_write_the_store_at_once(tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    failures: list[BaseException] = []
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        try:
            with Store(path, ttl_days=14) as store:
                for turn in range(5):
                    _answer(store, f"attempt-{number}-{turn}", f"ask-{number}-{turn}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Store(path, ttl_days=14) as store:
        log = store.log()
        assert log["seq"].to_list() == list(range(1, 41))
        assert log["attempt_id"].n_unique() == 40


def test_many_threads_can_create_the_store_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(6)

    def work() -> None:
        for turn in range(40):
            start.wait()
            try:
                Store(tmp_path / f"{turn}.sqlite", ttl_days=14).close()
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


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


def test_a_transaction_becomes_visible_to_others_at_its_end(store: Store, tmp_path: Path) -> None:
    with store.transaction():
        for number in range(5):
            _answer(store, f"attempt-{number}", f"ask-{number}")
        assert set(store.find([f"ask-{number}" for number in range(5)], "judge-1")) == {f"ask-{n}" for n in range(5)}
        with closing(sqlite3.connect(store.path)) as other:
            assert other.execute("SELECT count(*) FROM replies").fetchone() == (0,)
    assert store.log()["attempt_id"].to_list() == [f"attempt-{number}" for number in range(5)]


def test_a_failed_write_in_a_transaction_rolls_back_only_itself(store: Store) -> None:
    with store.transaction():
        _answer(store, "attempt-1")
        with pytest.raises(RC1Error, match=r"scores\.sqlite: .*\(TypeError: "):
            store.end(_line(store, "attempt-2", "ask-2", outcome=AttemptOutcome.OK, scores={1: 2}), endpoint=ENDPOINT)
        _answer(store, "attempt-3", "ask-3")
    assert store.log()["attempt_id"].to_list() == ["attempt-1", "attempt-3"]


def test_an_error_in_a_transaction_rolls_back_all_of_it(store: Store) -> None:
    _answer(store, "attempt-1")
    with pytest.raises(KeyboardInterrupt), store.transaction():
        _answer(store, "attempt-2", "ask-2")
        raise KeyboardInterrupt
    _answer(store, "attempt-3", "ask-3")
    assert store.log()["attempt_id"].to_list() == ["attempt-1", "attempt-3"]
    assert store.find(["ask-2"], "judge-1") == {}


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


def test_the_local_rubric_uses_few_transactions_and_a_live_judge_one_per_reply(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    connect = sqlite3.connect

    def traced_connect(*args: Any, **options: Any) -> sqlite3.Connection:
        db = connect(*args, **options)
        db.set_trace_callback(statements.append)
        return db

    def commits() -> int:
        """Count the transactions that write lines of the log."""
        return sum("INSERT INTO log" in one for one in "\n".join(statements).split("\nCOMMIT"))

    monkeypatch.setattr(sqlite3, "connect", traced_connect)
    rubric_run = bench.score_at("", dialogues(200), "judge.provider=rubric", "judge.base_url=null", "judge.model=null")
    assert rubric_run.calls == 600 and rubric_run.coverage == 1.0
    assert commits() == 2
    with running(Behaviour(delay="zero")) as server:
        bench.score(server, dialogues(4))
    assert commits() == 2 + 12


# ---- secrets ----


def _all_file_bytes(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_api_key_is_written_nowhere(
    provider: str, bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SCORER_API_KEY", PLANTED)
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx2", "httpcore2", "google_genai", "google_genai.models", "rc1.judge", "asyncio"):
        logging.getLogger(name).setLevel(logging.DEBUG)
    faults = {FaultKind.RESET: 0.1, FaultKind.SERVER_ERROR: 0.1, FaultKind.BAD_JSON_REPLY: 0.1}
    with running(Behaviour(delay="zero", api_key=PLANTED, faults=faults)) as server:
        judged = [bench.score(server, dialogues(6), provider=provider)]
        assert judged[0].stopped == ""
        server.behaviour = Behaviour(delay="zero", api_key="sk-another")  # its 401 repeats the key that it was sent
        judged.append(bench.score(server, dialogues(9), provider=provider))
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


def test_an_api_key_echoed_in_replies_and_errors_is_written_nowhere(
    bench: Bench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SCORER_API_KEY", PLANTED)
    caplog.set_level(logging.DEBUG)

    def echo_the_key(number: int, body: str, headers: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        key = headers["authorization"].removeprefix("Bearer ")
        if number % 4 == 0:
            return 500, {}, {"error": {"message": f"internal error while handling Bearer {key}"}}
        if number % 4 == 1:
            return 200, {}, f"not JSON, {key}"
        if number % 4 == 2:
            return completion(f"Your key is {key}.", model=f"judge-{key}")
        good = completion()[2]["choices"][0]["message"]["content"].replace("Fine.", f"Fine, {key}.")
        return completion(good)

    gateway.replies = echo_the_key
    judged = bench.score_at(gateway.url, dialogues(4), "judge.limits.attempts=2", "judge.limits.bad_reply_attempts=1")
    assert {"ok", "bad_reply"} <= set(judged.replies["outcome"])
    assert any("***" in text for text in judged.replies["text"])
    shown = (str(judged.rows.to_dicts()), str(judged.replies.to_dicts()), caplog.text)
    assert not [text for text in shown if PLANTED in text]
    assert PLANTED.encode() not in _all_file_bytes(bench.folder)
    assert bench.log().filter(pl.col("detail").str.contains("***", literal=True)).height > 0
