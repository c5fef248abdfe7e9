"""`rc1 scorecache`, also as `scorecache-cli`: statistics, deletion, and replay of bad replies."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.calibration.reward_hacking import ATTACK_STORE
from rc1_lib.cli import scorecache
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.training.episode_judge import REPLIES
from tests.judge.bench import Bench, dialogue
from tests.judge_server import Behaviour, FaultKind, JudgeServer

from .conftest import Done, Rc1, judge_at, widest_table_line

BAD = Behaviour(delay="zero", faults={FaultKind.WRONG_SCHEMA: 1.0})
GOOD = Behaviour(delay="zero")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "w")


def with_tool_call(number: int) -> list[dict[str, Any]]:
    """A dialogue with a tool call, which the store compresses."""
    call = {"id": "call_0", "type": "function", "function": {"name": "calc", "arguments": '{"expression":"1"}'}}
    question, answer = dialogue(number)
    return [question, {"role": "assistant", "content": None, "tool_calls": [call]}, answer]


def files(folder: Path) -> set[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {name for name in found if not name.startswith("logs/")}


def test_missing_store_is_reported_and_not_created(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("scorecache", "stat", "--workspace", tmp_path)
    assert done.code == 0
    assert "done: there is no store yet; the first scoring makes it" in done.out
    body = json.loads(rc1("scorecache", "stat", "--workspace", tmp_path, "--json").out)
    assert (body["exists"], body["bytes"], body["total"]["lines"], body["hit_rate"]) == (False, 0, 0, None)
    gone = rc1("scorecache", "invalidate", "--spec", "v1", "--workspace", tmp_path)
    assert gone.code == 2
    assert "nor to any others; nothing was deleted" in gone.err
    none = rc1("scorecache", "replay_bad", "--workspace", tmp_path)
    assert (none.code, "no calls were made" in none.out) == (0, True)
    assert not files(tmp_path)
    assert not (tmp_path / "data").exists()


def test_stat_counts_attempts_retries_and_replays_separately(
    rc1: Rc1, server: JudgeServer, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rc1_lib.judge.client.ATTEMPTS", 20)
    server.behaviour = Behaviour(delay="zero", seed=3, faults={FaultKind.SERVER_ERROR: 0.2})
    priced = ("judge.prices.input=1", "judge.prices.output=1")
    for _ in range(2):
        bench.score(server, [dialogue(number) for number in range(5)], *priced)
    requests, failed = server.stats().requests, server.stats().by_kind["server_error"]
    done = rc1("scorecache", "stat", "--workspace", bench.folder)
    body = json.loads(rc1("scorecache", "stat", "--workspace", bench.folder, "--json").out)
    assert failed
    assert body["total"]["lines"] == requests == 15 + failed
    assert body["total"]["retries"] == failed
    assert {one["outcome"]: one["lines"] for one in body["attempts"]} == {"ok": 15, "server_error": failed}
    assert (body["replays"], body["hit_rate"]) == (15, 0.5)
    tokens = server.stats().tokens_in + server.stats().tokens_out
    assert body["total"]["tokens_in"] + body["total"]["tokens_out"] == tokens
    assert body["total"]["usd"] == pytest.approx(tokens / 1e6)
    (stored,) = body["replies"]
    assert (stored["spec"], stored["model"], stored["outcome"]) == ("v1", "rc1-test-double-1", "ok")
    assert (stored["replies"], stored["expired"]) == (15, 0)
    assert body["bytes"] == (tmp_path / "w/data/judge/scores.sqlite").stat().st_size
    assert "hit rate 50.0 %" in done.out
    assert done.out.splitlines()[-1] == "done: 15 replies stored, 0 of them without scores"
    assert widest_table_line(done.out) <= 100


def test_invalidate_deletes_one_instruction_version_and_names_the_others(
    rc1: Rc1, server: JudgeServer, bench: Bench
) -> None:
    bench.score(server, [dialogue(1), dialogue(2)])
    run = bench.run(server.base_url)
    for where in (ATTACK_STORE, REPLIES):
        with open_store(run, where) as store:
            open_judge(run, store).score([dialogue(3)])
    other = rc1("scorecache", "invalidate", "--spec", "v2", "--workspace", bench.folder, "--json")
    assert (other.code, json.loads(other.out)) == (
        2, {"spec": "v2", "invalidated": 0, "specs": ["v1"], "skipped": []},
    )  # fmt: skip
    assert "has no replies to the instructions 'v2', only to v1; nothing was deleted" in other.err
    done = rc1("scorecache", "invalidate", "--spec", "v1", "--workspace", bench.folder)
    assert (done.code, "12 replies to the instructions 'v1' deleted" in done.out) == (0, True)
    body = json.loads(rc1("scorecache", "stat", "--workspace", bench.folder, "--json").out)
    assert (body["replies"], body["total"]["lines"]) == ([], 6)
    assert bench.score(server, [dialogue(1)]).calls == 3
    for where in (ATTACK_STORE, REPLIES):
        with open_store(run, where) as store:
            assert store.contents().is_empty()


def test_invalidate_says_that_it_cannot_read_the_store(rc1: Rc1, server: JudgeServer, bench: Bench) -> None:
    bench.score(server, [dialogue(1)])
    own = bench.folder / "data/judge/scores.sqlite"
    with open_store(bench.run(server.base_url), ATTACK_STORE) as store:
        open_judge(bench.run(server.base_url), store).score([dialogue(3)])
    own.write_bytes(b"not a store")
    done = rc1("scorecache", "invalidate", "--spec", "v1", "--workspace", bench.folder)
    assert (done.code, "scores.sqlite" in done.err, "has no replies" in done.err) == (2, True, False)
    with open_store(bench.run(server.base_url), ATTACK_STORE) as store:
        assert not store.contents().is_empty()


def test_replay_bad_replaces_bad_replies(rc1: Rc1, server: JudgeServer, bench: Bench) -> None:
    asked = [with_tool_call(number) for number in range(3)]
    server.behaviour = BAD
    assert bench.score(server, asked).coverage == 0
    server.behaviour = GOOD
    bench.score(server, [dialogue(9)])
    done = rc1("scorecache", "replay-bad", "--workspace", bench.folder, *judge_at(server))
    assert done.code == 0
    assert "9 bad replies: 9 fixed, 0 left" in done.out
    assert server.stats().requests == 2 * 9 + 3 + 9  # a bad reply is asked for twice
    again = bench.score(server, asked)
    assert (again.coverage, again.calls) == (1.0, 0)
    nothing = rc1("scorecache", "replay-bad", "--workspace", bench.folder, *judge_at(server), "--json")
    assert (nothing.code, json.loads(nothing.out)["asked"]) == (0, 0)
    assert max(server.stats().billed_by_key.values()) == 1


def test_next_line_of_stat_asks_the_judge_that_the_workspace_has_recorded(
    rc1: Rc1, server: JudgeServer, bench: Bench
) -> None:
    server.behaviour = BAD
    bench.score(server, [dialogue(1)])
    bench.run(server.base_url).write_effective_config()
    server.behaviour = GOOD
    following = rc1("scorecache", "stat", "--workspace", bench.folder).out.splitlines()[-1]
    done = rc1(*shlex.split(following.partition("rc1 ")[2]))
    assert "3 bad replies: 3 fixed, 0 left" in done.out


def own(capsys: pytest.CaptureFixture[str], *arguments: str) -> Done:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        scorecache.main([str(argument) for argument in arguments])
    return Done(int(ended.value.code or 0), *capsys.readouterr())


def test_scorecache_cli_takes_the_same_commands(
    rc1: Rc1, server: JudgeServer, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.score(server, [dialogue(1)])
    flags = ("--workspace", str(bench.folder), "--json")
    long, short = json.loads(rc1("scorecache", "stat", *flags).out), json.loads(own(capsys, "stat", *flags).out)
    assert {**long, "replies": []} == {**short, "replies": []}
    assert own(capsys, "invalidate", "--spec", "v2", *flags).code == 2
    assert own(capsys, "invalidate", *flags).code == 2
    assert own(capsys, "replay-bad", *flags).code == 0
    assert "stat" in own(capsys, "--help").out


def test_an_old_store_that_was_moved_aside_is_named_as_skipped(rc1: Rc1, tmp_path: Path) -> None:
    old = tmp_path / "data/judge/old.sqlite"
    old.parent.mkdir(parents=True)
    with closing(sqlite3.connect(old)) as db:
        db.execute("PRAGMA user_version = 2")
    done = rc1("scorecache", "stat", "--workspace", tmp_path, "--json")
    assert done.code == 0
    (skipped,) = json.loads(done.out)["skipped"]
    assert skipped["path"] == "data/judge/old.sqlite" and "version 2" in skipped["why"]
