"""Killed and concurrent processes: no reply is paid twice, and none is lost."""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter

from rc1_lib.judge.judge import open_judge, open_store
from tests.forks import Fork, this_interpreter
from tests.judge.bench import Bench, answered, dialogues, idempotency_key, sent, url_of
from tests.judge_server import Behaviour, FaultKind, JudgeServer, running


def _process(bench: Bench, server: JudgeServer, count: int, *more: str, provider: str = "openai") -> Fork:
    forks = this_interpreter(bench.folder.with_name("forks"))
    start = "tests.judge.score_in_process.main"
    return forks.start(start, bench.folder, url_of(server, provider), provider, count, *more)


def _result(process: Fork) -> dict[str, object]:
    assert process.wait() == 0, process.read_output()
    return dict(json.loads(process.read_output().splitlines()[-1]))


def _kill_at(process: Fork, server: JudgeServer, requests: int) -> None:
    while server.stats().requests < requests:
        assert process.poll() is None, f"the process ended before the kill: {process.read_output()}"
        time.sleep(0.001)
    assert process.kill() == -signal.SIGKILL


def _assert_each_reply_once(bench: Bench, asks: int) -> None:
    """Assert that every ask has one reply, unchanged, with its line of the log."""
    paid = answered(bench.log())
    assert len(paid) == asks
    assert paid["ask_key"].n_unique() == asks
    assert bench.sql("SELECT count(*) FROM replies WHERE scores IS NOT NULL") == [(asks,)]
    assert sorted(bench.sql("SELECT ask_key, request_id, reply_sha256, scores FROM replies")) == sorted(
        paid.select("ask_key", "request_id", "reply_sha256", "scores").iter_rows()
    )


def test_repeated_kills_neither_pay_a_reply_twice_nor_lose_one(bench: Bench) -> None:
    count, kills, rng = 40, 3, random.Random(7)
    with running(Behaviour(latency_ms=(15.0, 0.6))) as server:
        for kill in range(kills):
            _kill_at(_process(bench, server, count), server, kill * 40 + rng.randint(5, 25))
        last = bench.score(server, dialogues(count))
        while server.stats().by_kind.get("ok", 0) > server.stats().answered:
            time.sleep(0.01)  # a reply that a killed process had asked for is still being written
        stats = server.stats()

    assert (last.coverage, last.stopped) == (1.0, "")
    _assert_each_reply_once(bench, 3 * count)
    assert bench.sql("SELECT count(*) FROM sent") == [(0,)]
    log = bench.log()
    interrupted = log.filter(log["outcome"] == "interrupted")
    # Every request that the server received has its line; an interrupted one may not have been sent.
    logged, received = Counter(sent(log)["attempt_id"]), Counter(stats.attempt_ids)
    assert set(logged.values()) == set(received.values()) == {1}
    assert received <= logged
    assert set(logged - received) <= set(interrupted["attempt_id"])
    assert 1 <= len(interrupted) <= 8 * kills
    # A reply is billed again only if the process died before it came: this server ignores idempotency keys.
    ((store,),) = bench.sql("SELECT id FROM identity")
    billed = {idempotency_key(store, key, 0): key for key in log["ask_key"].unique()}
    assert set(stats.billed_by_key) == set(billed)
    interrupted_asks = Counter(interrupted["ask_key"])
    for key, times in stats.billed_by_key.items():
        assert times - 1 <= interrupted_asks[billed[key]]
    assert stats.answered - 3 * count <= len(interrupted)


def test_two_concurrent_processes_pay_no_reply_twice(bench: Bench) -> None:
    with running(Behaviour(latency_ms=(15.0, 0.4))) as server:
        processes = [_process(bench, server, 20) for _ in range(2)]
        results = [_result(process) for process in processes]
        stats = server.stats()
    assert [(found["coverage"], found["stopped"]) for found in results] == [(1.0, ""), (1.0, "")]
    assert sum(int(str(found["calls"])) for found in results) == stats.requests == stats.answered == 60
    assert set(stats.billed_by_key.values()) == {1}
    assert bench.outcomes() == {"ok": 60, "hit": 60}
    _assert_each_reply_once(bench, 60)


def test_calls_in_flight_of_a_dead_process_do_not_block_another(bench: Bench) -> None:
    """An open store writes the lines of a dead process once it needs the same replies."""
    behaviour = Behaviour(delay="zero", faults={FaultKind.HANG: 1.0})
    with running(behaviour) as server:
        run = bench.run(server.base_url, "judge.samples=1")
        with open_store(run) as store:
            process = _process(bench, server, 8, "judge.samples=1")
            _kill_at(process, server, 8)
            server.behaviour = Behaviour(delay="zero")
            judged = open_judge(run, store).score(dialogues(8))
    assert judged.coverage == 1.0
    assert bench.outcomes() == {"interrupted": 8, "ok": 8}
    assert list((bench.folder / "data/judge/scores.sqlite.runs").iterdir()) == []
