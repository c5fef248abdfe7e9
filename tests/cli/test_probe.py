"""`probe-scorer` with an empty workspace and with a shadow set."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from rc1_lib.judge.score_files import probe_dialogues
from rc1_lib.preflight.preconditions import OWN_WAIVERS
from tests.judge_server import Behaviour, FaultKind, Manner, running

from .conftest import SMALL, Rc1, judge_at

REPORT = "reports/rc1/probe_scorer.json"


def test_probe_dialogues_are_distinct_and_in_both_languages() -> None:
    own = probe_dialogues()
    assert len({json.dumps(one) for one in own}) == len(own) == 8
    texts = ["".join(str(message["content"]) for message in one) for one in own]
    assert 3 <= sum(not text.isascii() for text in texts) <= 5
    for one in own:
        assert [message["role"] for message in one] == ["user", "assistant"] * (len(one) // 2)


def test_probe_of_a_live_judge_needs_only_an_empty_workspace(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero")) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--live", *judge_at(server))
        assert server.stats().requests == 8 * 3
        host = server.base_url.split("/")[2]
    assert done.code == 0, done.out + done.err
    assert f"asked about 8 of RC1's own dialogues: openai at {host}, model rc1-test-double-1" in done.out
    assert done.out.splitlines()[-3] == "pass: judge openai"
    assert OWN_WAIVERS in shlex.split(done.out.splitlines()[-1]), "the shipped waivers are about the rubric"
    assert json.loads((tmp_path / REPORT).read_text())["asked_about"] == "RC1's own dialogues"


def test_judge_that_rejects_a_parameter_is_reported_with_its_own_sentence(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero", manners=(Manner.NO_TEMPERATURE,))) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--live", *judge_at(server))
    error = json.loads((tmp_path / REPORT).read_text())["gates"][0]["error"]
    assert (done.code, "'temperature' does not support it with this model" in error) == (2, True), done.out + done.err


def test_failing_judge_is_reported_in_the_last_five_lines(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.SERVER_ERROR: 1.0})) as server:
        done = rc1("probe-scorer", "--workspace", tmp_path, "--n", 2, *judge_at(server))
    assert done.code == 2
    assert "fail: judge openai" in done.out.splitlines()[-5:]


def test_unreachable_judge_is_reported_once(rc1: Rc1, tmp_path: Path) -> None:
    with running(Behaviour()) as server:
        pass
    gone = (*judge_at(server), "--set", "judge.limits.attempts=1")
    done = rc1("probe-scorer", "--workspace", tmp_path, "--live", *gone)
    why, verdict = done.out.splitlines()[-4:-2]
    assert (done.code, verdict) == (2, "fail: judge openai"), done.out + done.err
    assert why.startswith("judge_probe: the judge 'openai' stopped: ") and why.endswith("connection attempts failed")
    assert " ".join((done.out + done.err).split()).count("attempts in a row") == 1


def test_probe_uses_an_existing_shadow_set(rc1: Rc1, workspace: Path) -> None:
    done = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4")
    assert (done.code, "asked about 4 of data/shadow_eval_245.jsonl" in done.out) == (0, True)
    (workspace / "data/shadow_eval_245.jsonl").write_text("{\n")
    damaged = rc1("probe-scorer", "--workspace", workspace, *SMALL, "--n", "4")
    assert damaged.code == 2, "a damaged shadow set is not skipped"


def test_last_lines_have_no_secret(rc1: Rc1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORER_API_KEY", "sk-word-4711-word-4711")
    setting = "gates.waivers={judge_agreement: 'none, sk-word-4711-word-4711'}"
    done = rc1("probe-scorer", "--workspace", tmp_path, "--n", "2", "--set", setting)
    assert (done.code, "--set" in done.out.splitlines()[-1]) == (0, True), done.err
    assert "4711" not in done.out + done.err


def test_probe_of_more_dialogues_than_there_are_fails(rc1: Rc1, tmp_path: Path) -> None:
    done = rc1("probe-scorer", "--workspace", tmp_path, "--n", "9")
    assert (done.code, "give at most 8, or run rc1 build-pool first" in done.err) == (2, True)
