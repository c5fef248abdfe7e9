"""Episode scores by the calibrated weights: their values, missing and high-variance scores, retries and errors."""

from __future__ import annotations

import json
import math
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import fmean
from typing import Any

import polars as pl
import pytest

from rc1_lib.calibration.judged_rows import judge_rows, with_reward
from rc1_lib.config.judge import Budget
from rc1_lib.environment.episode import Episode, as_row
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.rewards import RewardSettings, reward_terms
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.errors import ConfigError, RC1Error, TicketError
from rc1_lib.judge import client
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.judge.maintenance import paid_in
from rc1_lib.judge.results import JudgeStoppedError
from rc1_lib.judge.rubric import DIMENSIONS
from rc1_lib.run import Run
from rc1_lib.training import episode_judge
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.file_hashes import sha256_file
from tests.forks import Forks
from tests.judge.bench import dialogues, overrides
from tests.judge.gateway import Reply, completion, running_gateway
from tests.judge_server import Behaviour, FaultKind, JudgeServer, running
from tests.judge_server.behaviour import MODEL
from tests.training.weighed import WEIGHTS, weigh

Tiny = Callable[..., Run]
REPLIES, ASKED_ABOUT = "data/judge/episodes/replies.sqlite", "data/judge/episodes/asked"
OF_JUDGE = {"answered": 0.5, "grounded": 0.3, "restrained": 0.2}
FAILING = Behaviour(delay="zero", faults={FaultKind.SERVER_ERROR: 0.1})
"""A provider with transient failures: missing scores would be there if it were asked again."""


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with running(Behaviour(delay="zero")) as server:
        yield server


def live_run(tiny: Tiny, server: JudgeServer, *more: str) -> Run:
    """A run whose episodes a live judge scores."""
    return live_run_at(tiny, server.base_url, *more)


def live_run_at(tiny: Tiny, url: str, *more: str) -> Run:
    run = tiny(
        "training.reward.judge=1",
        "training.reward.success=0",
        *overrides(url),
        *more,
    )
    return weigh(run, OF_JUDGE, [MODEL])


def has_high_variance(number: int) -> bool:
    """Whether the samples of `disagreeing_judge` disagree about `dialogue(number)`."""
    return number % 3 == 0


def disagreeing_judge() -> Callable[[int, str, dict[str, str]], Reply]:
    """Return grades that depend on the dialogue and its number of requests, not on the order of calls."""
    asked: Counter[int] = Counter()

    def reply(_: int, body: str, __: dict[str, str]) -> Reply:
        found = re.search(r"What is (\d+) \+ 1", body)
        assert found is not None
        number = int(found[1])
        step = (0.1 if has_high_variance(number) else 0.01) * (asked[number] - 1)
        asked[number] += 1
        grades = {name: 0.3 + 0.02 * number + 0.05 * place + step for place, name in enumerate(DIMENSIONS)}
        return completion(json.dumps({"reason": "So.", **grades}), MODEL)

    return reply


# ---- values ----


def played_episode(row: dict[str, Any], number: int) -> Episode:
    """An episode on `row`: questions, also an empty one, sometimes a malformed turn or an answer."""
    limits = Limits(turns=8, tokens=400, tool_errors=2, malformed=1, calls=5, turn_chars=2000, argument_chars=300)
    episode = Episode(World(row), limits)
    for turn in range(1 + number % 4):
        question = "" if turn == 3 else "Which one do you mean?"
        calls = [{"id": "c", "type": "function", "function": {"name": "ask_user", "arguments": ""}}]
        calls[0]["function"]["arguments"] = json.dumps({"question": question})
        episode.send({"role": "assistant", "content": "", "tool_calls": calls})
    if number % 3 == 0:
        episode.say("<tool_call>no call</tool_call>")
    if number % 4 and episode.status is EpisodeStatus.RUNNING:
        answer = row["answer"] if number % 2 else "unknown"
        episode.send({"role": "assistant", "content": f"It is so. Answer: {answer}"})
    return episode


def test_training_reward_equals_the_audited_reward_bit_for_bit(tiny: Tiny, pool: list[dict[str, Any]]) -> None:
    """Judged score, penalty and total, on the scripted expert's dialogues and on episodes."""
    alone = (
        "training.reward.success=0",
        "training.reward.turn=0",
    )
    run = weigh(tiny("training.reward.judge=1", *alone))
    episodes = [played_episode(row, number) for number, row in enumerate(pool[:40])]
    rows = [as_row(row, one) for row, one in zip(pool, episodes, strict=False)]
    audited = with_reward(run, judge_rows(run, pl.DataFrame([*pool[40:60], *rows])).rows, WEIGHTS)
    found = EpisodeJudge(run).score([row["messages"] for row in [*pool[40:60], *rows]])
    assert list(found.values) == audited["main"].to_list()
    assert len(set(found.values)) > 8 and all(value is not None and 0 <= value <= 1 for value in found.values)
    assert (found.unstable, found.metrics()["judge/scored"]) == (0, 1.0)
    settings = replace(RewardSettings.of(run.config), malformed=0.0)
    paid = [
        reward_terms(one.outcome(), bucket, settings, judged=score)
        for one, bucket, score in zip(episodes, audited["bucket"][20:], found.values[20:], strict=True)
    ]
    assert [one.penalty for one in paid] == audited["penalty"][20:].to_list()
    assert [one.total for one in paid] == audited["total"][20:].to_list()
    assert sum(one.penalty > 0 for one in paid) > 5


def test_weights_changed_after_the_ticket_are_rejected(tiny: Tiny) -> None:
    run = weigh(tiny("training.reward.judge=1"))
    vouched = {"weights": sha256_file(run.workspace.path(run.config.weights))}
    vouched["judge_spec"] = sha256_file(PROJECT_ROOT / "configs/judge/v1.yaml")
    assert EpisodeJudge(replace(run, vouched=vouched)).sha256 == EpisodeJudge(run).sha256
    weigh(run, OF_JUDGE)  # adopted after a passed calibration, but not those of the ticket
    with pytest.raises(TicketError, match=r"weights\.json .*\(weights\).*SHA-256"):
        EpisodeJudge(replace(run, vouched=vouched))


def test_audit_returns_plain_scores_and_checks_the_budget_first(tiny: Tiny, server: JudgeServer) -> None:
    run = live_run(tiny, server, "judge.budget.max_calls=18", "batch_size=2")
    judge = EpisodeJudge(run)
    assert judge.audit([*dialogues(4), *dialogues(2)]) == judge.score([*dialogues(4), *dialogues(2)]).values
    asked = server.stats().requests
    with pytest.raises(ConfigError, match=r"judge\.budget\.max_calls .*18, .* 21 .*training\.held_out\.judged"):
        judge.audit(dialogues(7))
    assert server.stats().requests == asked


# ---- a repeated step ----


def test_repeated_step_reuses_its_scores_without_requests(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(episode_judge, "MIN_SCORED", 0.1)
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    with running(FAILING) as failing:
        run = live_run(tiny, failing)
        first = EpisodeJudge(run).score(dialogues(20))
        asked = failing.stats().requests
        assert 0 < first.scored < 20
        assert "costs/judge_usd" not in first.metrics(), "no price is known"
        run.workspace.path(REPLIES).unlink()
        assert EpisodeJudge(run).score(dialogues(20)) == first
        assert failing.stats().requests == asked


# ---- missing scores and high variance ----


def test_too_few_scores_stop_the_training_and_save_no_step(tiny: Tiny) -> None:
    with running(Behaviour(delay="zero", faults={FaultKind.REFUSAL: 0.3})) as refusing:
        run = live_run(tiny, refusing)
        with pytest.raises(RC1Error, match=r" of 30 .* 90% and 2 \(training\.update\.minibatches\)"):
            EpisodeJudge(run).score(dialogues(30))
    assert not run.workspace.path("data/judge/episodes/steps").exists()


def test_high_variance_scores_shrink_to_the_mean_of_the_others(tiny: Tiny) -> None:
    strict = "gates.stability.max_variance=0.0006"
    with running_gateway() as gateway:
        gateway.replies = disagreeing_judge()
        run = live_run_at(tiny, gateway.url, strict)
        found = EpisodeJudge(run).score(dialogues(12))
        with open_store(run, REPLIES) as store:
            judged = open_judge(run, store).score(dialogues(12))
        assert (judged.calls, len(gateway.requests)) == (0, 36)
    rows = judged.rows.to_dicts()
    plain = [math.fsum(weight * row[name] for name, weight in OF_JUDGE.items()) for row in rows]
    high_variance = [row["unstable"] for row in rows]
    assert high_variance == [has_high_variance(number) for number in range(12)]
    centre = fmean(value for value, unstable in zip(plain, high_variance, strict=True) if not unstable)
    expected = [
        centre + 0.5 * (value - centre) if unstable else value
        for value, unstable in zip(plain, high_variance, strict=True)
    ]
    assert found.values == pytest.approx(expected)
    assert found.unstable == sum(high_variance)


# ---- errors ----


def test_judge_version_other_than_the_calibrated_one_is_rejected(tiny: Tiny, server: JudgeServer) -> None:
    judge = EpisodeJudge(weigh(live_run(tiny, server), OF_JUDGE, ["rc1-test-double-0"]))
    with pytest.raises(RC1Error, match=f" {MODEL}, .* rc1-test-double-0, "):
        judge.score(dialogues(2))


# ---- fingerprint and cost ----


@pytest.mark.parametrize("override", ["judge.samples=5", "gates.stability.max_variance=0.01"])
def test_judge_settings_change_the_fingerprint(tiny: Tiny, override: str) -> None:
    run = weigh(tiny("training.reward.judge=1"))
    assert EpisodeJudge(run).sha256 == EpisodeJudge(run).sha256
    assert EpisodeJudge(tiny("training.reward.judge=1", override)).sha256 != EpisodeJudge(run).sha256


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_costs_of_killed_and_stopped_requests_count_in_the_step(
    tiny: Tiny, server: JudgeServer, forks: Forks, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = live_run(tiny, server, "judge.prices={input: 1, output: 2}")
    killed = forks.start("tests.training.killed.score_and_be_killed_midway", run.workspace.root, *run.overrides)
    assert killed.wait() == -signal.SIGKILL, killed.read_output()[-2000:]
    with monkeypatch.context() as patched, pytest.raises(JudgeStoppedError, match=r"max_calls \(1\)"):
        patched.setattr(episode_judge, "NO_LIMIT", Budget(max_usd=None, max_calls=1))
        EpisodeJudge(run).score(dialogues(2))
    scores = EpisodeJudge(run).score(dialogues(2))
    with open_store(run, REPLIES) as store:
        log = store.log().filter(pl.col("outcome") != "hit")
    assert log["run_id"].n_unique() == 3 and scores.calls == log.height
    assert scores.usd == pytest.approx(paid_in(run, REPLIES).usd) and scores.usd >= log["cost_usd"].sum() > 0
    assert not any(run.workspace.path(ASKED_ABOUT).iterdir())
