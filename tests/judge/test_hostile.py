"""Attacks and broken providers, and how the judge handles them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import RC1Error, RowError
from rc1_lib.evidence import Evidence
from rc1_lib.gates import anti_simulation, judge_probe
from rc1_lib.judge import client, judge
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.run import Run, open_run
from tests.conftest import SMALL
from tests.judge.bench import NUMBERS, Bench, dialogue, dialogues, overrides
from tests.judge.gateway import Gateway, completion
from tests.judge_server import Behaviour, running

pytestmark = pytest.mark.usefixtures("planted_key")


def scores(value: float, **more: Any) -> str:
    return json.dumps({"reason": f"It is {value}.", **dict.fromkeys(DIMENSIONS, value), **more})


@pytest.mark.parametrize("key", ["\\ud800", "\\u0000"])
def test_a_reply_with_an_unwritable_key_is_stored_as_bad_and_not_requested_again(
    key: str, bench: Bench, gateway: Gateway
) -> None:
    gateway.replies = lambda number, body, headers: completion(f'{{"reason": "x", "{key}": 1}}', "m-0")
    first = bench.score_at(gateway.url, dialogues(3))
    again = bench.score_at(gateway.url, dialogues(3))
    assert (first.coverage, first.stopped, again.calls) == (0.0, "", 0)
    assert first.rows[NUMBERS].null_count().row(0) == (3,) * len(NUMBERS)
    assert bench.outcomes() == {"bad_reply": 18}


def test_samples_of_two_model_versions_give_a_missing_score(bench: Bench, gateway: Gateway) -> None:
    gateway.replies = lambda number, body, headers: completion(scores(0.9 - 0.8 * (number % 2)), f"m-{number % 2}")
    judged = bench.score_at(gateway.url, dialogues(6), "judge.limits.concurrency=[1, 1]")
    mixed = judged.rows.filter(judged.rows["models"].list.len() > 1)
    assert mixed.height == 6
    assert not mixed["scored"].any()
    assert mixed[NUMBERS].null_count().row(0) == (6,) * len(NUMBERS)
    assert "two versions of the model" in mixed["reason"][0]


def test_edited_stored_scores_that_are_none_are_an_error(bench: Bench, gateway: Gateway) -> None:
    bench.score_at(gateway.url, dialogues(2))
    bench.sql("UPDATE replies SET scores = '{\"answered\": 7.0}'")
    with pytest.raises(RC1Error, match=r"scores\.sqlite: .*ValueError: .*chatcmpl-1"):
        bench.score_at(gateway.url, dialogues(2))


def test_a_provider_that_rate_limits_every_call_stops_the_run(
    bench: Bench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_WAIT_S", 1.0)
    monkeypatch.setattr(client, "ATTEMPTS", 50)
    gateway.replies = lambda number, body, headers: (429, {}, {"error": {"message": "slow down"}})
    judged = bench.score_at(gateway.url, dialogues(50))
    assert "rate-limited every call" in judged.stopped
    assert judged.coverage == 0.0


def test_stored_scores_do_not_count_if_the_model_version_cannot_be_checked(
    bench: Bench, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "MODEL_CHECK_S", 0)
    bench.score_at(gateway.url, dialogues(2))
    gateway.replies = lambda number, body, headers: (500, {}, {"error": {"message": "down"}})
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    judged = bench.score_at(gateway.url, dialogues(2))
    assert "current model" in judged.stopped
    assert judged.coverage == 0.0


@pytest.mark.parametrize("invalid", [[], ["x"], [{"content": "no role"}], [{"role": "user", "content": "only asked"}]])
def test_an_invalid_dialogue_raises_an_error_before_any_request(invalid: Any, bench: Bench, gateway: Gateway) -> None:
    with pytest.raises(RowError, match="dialogue 2 of 2 "):
        bench.score_at(gateway.url, [dialogue(1), invalid])
    assert gateway.requests == []


def test_score_on_a_running_loop_raises_an_error_that_names_score_async(bench: Bench, gateway: Gateway) -> None:
    async def call() -> None:
        run = bench.run(gateway.url)
        with open_store(run) as store:
            open_judge(run, store).score(dialogues(1))

    with pytest.raises(RC1Error, match=r"await Judge\.score_async"):
        asyncio.run(call())


# ---- the gates ----


def with_judge(built: Run, tmp_path: Path, url: str, *more: str) -> Run:
    """Return a run with the small pool's shadow set and a live judge, in a new workspace."""
    shadow = built.workspace.path(built.config.shadow.path)
    for source in (shadow, built.workspace.manifest_path(built.config.shadow.path)):
        target = tmp_path / source.relative_to(built.workspace.root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    return open_run(profile="local", workspace=tmp_path, overrides=(*SMALL, *overrides(url), *more))


def test_the_test_doubles_log_fails_in_profile_prod(built: Run, tmp_path: Path) -> None:
    with running(Behaviour(latency_ms=(5.0, 0.4))) as server:
        run = with_judge(built, tmp_path, server.base_url)
        assert judge_probe.SPEC.gate(Evidence(run), 1).failures == ()
        assert anti_simulation.SPEC.gate(Evidence(run), 1).failures == ()
        prod = open_run(profile="prod", workspace=tmp_path, overrides=overrides(server.base_url))
        failed = {check.name for check in anti_simulation.SPEC.gate(Evidence(prod), 1).failures}
    assert failed == {"scores are made up"}
