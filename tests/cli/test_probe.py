"""`probe-scorer` where nothing was built yet, and where there is a shadow set."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rc1_lib.judge.trial import probe_dialogues
from rc1_lib.testing.judge_server import Behaviour, FaultKind, Manner, running

from .conftest import SMALL, Rc1, judge_at

REPORT = "reports/rc1/probe_scorer.json"


def test_the_dialogues_are_different_and_in_both_languages() -> None:
    own = probe_dialogues()
    assert len({json.dumps(one) for one in own}) == len(own) == 8
    texts = ["".join(str(message["content"]) for message in one) for one in own]
    assert 3 <= sum(not text.isascii() for text in texts) <= 5
    for one in own:
        assert [message["role"] for message in one] == ["user", "assistant"] * (len(one) // 2)


def test_an_empty_workspace_is_enough_for_a_live_judge(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero")) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--live", *judge_at(server))
        assert server.stats().requests == 1 + 8 * 3
        host = server.base_url.split("/")[2]
    assert done.code == 0, done.out + done.err
    assert f"asked about 8 of RC1's own dialogues: openai at {host}, model rc1-test-double-1" in done.out
    assert "TEST DOUBLE: scores here were made up" in done.out
    assert done.out.splitlines()[-3] == "pass: judge openai"
    assert json.loads((tmp_path / REPORT).read_text())["asked_about"] == "RC1's own dialogues"


def test_a_judge_that_refuses_a_parameter_is_proposed_the_settings_that_work(rc1: Rc1, tmp_path: Path) -> None:
    manners = (Manner.NO_TEMPERATURE, Manner.COMPLETION_TOKENS, Manner.NO_SCHEMA)
    with running(Behaviour(delay="zero", manners=manners)) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--live", *judge_at(server))
        assert server.stats().requests == 4
        last = done.out.splitlines()[-1]
        assert (done.code, last.startswith("next, which works: rc1 probe-scorer")) == (2, True), done.out + done.err
        again = rc1(*shlex.split(last.partition(": rc1 ")[2]))
        stat = rc1("scorecache", "stat", "--workspace", tmp_path)
    assert again.code == 0, again.out + again.err
    assert "scores.trial.sqlite: 5 more attempts" in stat.out


def test_a_judge_that_fails_is_said_so_in_five_lines(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.SERVER_ERROR: 1.0})) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--n", 2, *judge_at(server))
    assert done.code == 2
    assert "fail: judge openai" in done.out.splitlines()[-5:]


def test_a_judge_that_is_not_there_is_said_once(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour()) as server:
        pass
    gone = (*judge_at(server), "--set", "judge.limits.attempts=1")
    done = rc1("probe-scorer", "--workspace", tmp_path, "--live", *gone)
    why, verdict = done.out.splitlines()[-4:-2]
    assert (done.code, verdict) == (2, "fail: judge openai"), done.out + done.err
    assert why.startswith("judge_probe: the judge 'openai' stopped: ") and why.endswith("connection attempts failed")
    assert " ".join((done.out + done.err).split()).count("attempts in a row") == 1


def test_a_judge_that_is_too_slow_when_asked_alone_costs_two_calls_and_is_named(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.HANG: 1.0})) as server:
        slow = ("--live", *judge_at(server), "--set", "judge.limits.timeout_s=0.3")
        done = rc1("probe-scorer", "--workspace", tmp_path, *slow)
        assert (done.code, server.stats().requests) == (2, 2), done.out + done.err
    said = json.loads((tmp_path / REPORT).read_text())["gates"][0]["error"]
    assert said.startswith("2 calls about one dialogue, one after the other, brought no scores: timeout: no ")
    assert said.endswith("within 0.3 s (judge.limits.timeout_s); raise it, or ask a faster judge")


def test_a_shadow_set_that_is_there_is_asked_about(rc1: Rc1, workspace: Path) -> None:
    done = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4")
    assert (done.code, "asked about 4 of data/shadow_eval_245.jsonl" in done.out) == (0, True)
    (workspace / "data/shadow_eval_245.jsonl").write_text("{\n")
    damaged = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4")
    assert damaged.code == 2, "a damaged one is not passed over"


def test_no_secret_is_in_the_last_lines(rc1: Rc1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_API_KEY", "sk-word-4711-word-4711")
    setting = "gates.waivers={judge_agreement: 'nobody, sk-word-4711-word-4711'}"
    done = rc1("probe-scorer", "--workspace", tmp_path, "--n", "2", "--set", setting)
    assert (done.code, "--set" in done.out.splitlines()[-1]) == (0, True), done.err
    assert "4711" not in done.out + done.err


def test_more_than_there_are_is_refused(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("probe-scorer", "--workspace", tmp_path, "--n", "9")
    assert (done.code, "give at most 8, or run rc1 build-pool first" in done.err) == (2, True)
