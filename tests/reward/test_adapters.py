"""The judge as a reward function of TRL and verl, called in their forms over loopback."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.extras.adapters.trl import judge_reward, judge_reward_async
from rc1_lib.extras.adapters.verl import UnscoredError, make_compute_score
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.reward import weighted_judge
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.run import Run, published_config
from tests.judge.bench import Bench, dialogue
from tests.judge.gateway import Gateway, completion
from tests.judge_server import Behaviour, FaultKind, JudgeServer, running

WEIGHTS = {"weights": dict(published_config().reward.old_weights)}
FAST = Behaviour(delay="zero")
REFUSING = Behaviour(delay="zero", faults={FaultKind.REFUSAL: 1.0})
GOLD = "the-gold-answer-is-4711"


def texts(*numbers: int) -> tuple[list[str], list[str]]:
    """Return prompts and completions as texts."""
    both = [[message["content"] for message in dialogue(number)] for number in numbers]
    return [one[0] for one in both], [one[1] for one in both]


def run_at(bench: Bench, server: JudgeServer, *more: str) -> Run:
    return bench.run(server.base_url, "judge.samples=2", *more)


def expected(run: Run, *numbers: int) -> list[float]:
    """Return the weighted sums of the stored medians."""
    with open_store(run) as store:
        judged = open_judge(run, store).score([dialogue(number) for number in numbers])
    assert judged.calls == 0
    return [sum(weight * row[name] for name, weight in WEIGHTS["weights"].items()) for row in judged.rows.to_dicts()]


# ---- TRL ----


def test_the_reward_is_the_weighted_sum_of_medians(bench: Bench) -> None:
    with running(FAST) as server:
        run = run_at(bench, server)
        reward = judge_reward(run, WEIGHTS)
        rewards = reward(*texts(1, 2, 1), answer=[GOLD] * 3, trainer_state=object())
        assert rewards == expected(run, 1, 2, 1)
        assert server.stats().requests == 4
    assert rewards[0] == rewards[2] != rewards[1]
    assert reward.__name__ == "rc1_judge"


def test_texts_and_messages_give_the_same_dialogue(bench: Bench) -> None:
    prompts, completions = texts(1)
    with running(FAST) as server:
        reward = judge_reward(run_at(bench, server), WEIGHTS)
        first = reward(prompts, completions)
        as_messages = reward(
            [[{"role": "user", "content": prompts[0]}]], [[{"role": "assistant", "content": completions[0]}]]
        )
        as_parts = reward(prompts, [[{"content": [{"type": "text", "text": completions[0]}], "tool_calls": None}]])
        assert first == as_messages == as_parts
        assert server.stats().requests == 2


@pytest.mark.parametrize(
    ("prompt", "completed", "message"),
    [
        ("a", None, "found a NoneType"),
        ([{"role": "user", "content": "a"}], [{"role": "tool", "content": "b"}], "no message is the assistant's"),
        ("a", [{"role": "assistant", "tool_calls": [{"name": "calc"}]}], "a tool call whose function lacks a name"),
    ],
)
def test_an_invalid_dialogue_raises_an_error_that_names_its_place(prompt: Any, completed: Any, message: str) -> None:
    with pytest.raises(RC1Error, match=rf"^completion 3: .*{message}"):
        dialogue_of(prompt, completed, "completion 3")


def test_lists_of_unequal_length_raise_an_error(bench: Bench) -> None:
    with running(FAST) as server:
        reward = judge_reward(run_at(bench, server), WEIGHTS)
        with pytest.raises(RC1Error, match=r"\b2 prompts .*\b1 completions"):
            reward(["a", "b"], ["c"])
        assert server.stats().requests == 0


def test_a_missing_score_gives_the_reward_none(bench: Bench) -> None:
    with running(FAST) as server:
        run = run_at(bench, server)
        reward = judge_reward(run, WEIGHTS)
        good = reward(*texts(1, 2))
        server.behaviour = REFUSING
        assert reward(*texts(1, 3, 2)) == [good[0], None, good[1]]


def test_low_coverage_stops_the_training_once_enough_dialogues_were_scored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted_judge, "_ENOUGH", 10)
    with running(FAST) as server:
        run = run_at(bench, server)
        reward = judge_reward(run, WEIGHTS)
        reward(*texts(*range(5)))
        server.behaviour = REFUSING
        assert reward(*texts(*range(10, 14))) == [None] * 4, "5 of 9: below the coverage, but of too few dialogues"
        with pytest.raises(RC1Error, match=r"50\.0% of 10 .* 98%\..*declined"):
            reward(*texts(20))


def test_judge_reward_works_inside_a_running_loop(bench: Bench) -> None:
    async def train(reward: Callable[..., Any]) -> Any:
        return reward(*texts(1, 2))

    with running(FAST) as server:
        run = run_at(bench, server)
        assert asyncio.run(train(judge_reward(run, WEIGHTS))) == expected(run, 1, 2)


def test_the_async_form_is_a_coroutine_function_with_the_same_rewards(bench: Bench) -> None:
    with running(FAST) as server:
        run = run_at(bench, server)
        reward = judge_reward_async(run, WEIGHTS)
        assert inspect.iscoroutinefunction(reward)
        assert reward.__name__ == "rc1_judge"
        assert asyncio.run(reward(*texts(1, 2), answer=[GOLD] * 2)) == expected(run, 1, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"weights": {"answered": 0.5, "kind": 0.5}}, "unknown dimensions is 1"),
        ({"answered": 0.5, "grounded": 5.0}, "largest weight is 5"),
    ],
)
def test_invalid_weights_raise_an_error_that_names_the_failed_check(
    bench: Bench, weights: dict[str, Any], message: str
) -> None:
    run = bench.run("http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match=f"{message}.* 'v1' "):
        judge_reward(run, weights)


# ---- verl ----


def test_compute_score_returns_a_number_and_never_sends_the_gold_answer(bench: Bench, gateway: Gateway) -> None:
    run = bench.run(gateway.url)
    compute_score = make_compute_score(run, WEIGHTS)
    asked = {"prompt": ({"role": "user", "content": "What is 3 + 1?"},), "answer": GOLD, "index": 7}
    rewards = compute_score(
        data_source="gsm8k", solution_str="Answer: 4", ground_truth=GOLD, extra_info=asked, reward_router_address=None
    )
    assert rewards == pytest.approx(0.5)
    assert compute_score("gsm8k", "Answer: 4", GOLD, {"prompt": "What is 3 + 1?"}) == rewards
    assert len(gateway.requests) == run.config.judge.samples
    assert all("What is 3 + 1?" in body and "Answer: 4" in body for body in gateway.requests)
    assert not any(GOLD in body for body in gateway.requests)
    written = b"".join(path.read_bytes() for path in Path(bench.folder).rglob("*") if path.is_file())
    assert b"Answer: 4" in written
    assert GOLD.encode() not in written


def test_compute_score_raises_an_error_for_a_missing_score(bench: Bench, gateway: Gateway) -> None:
    gateway.replies = lambda number, body, headers: completion("I would rather not.")
    compute_score = make_compute_score(bench.run(gateway.url), WEIGHTS)
    with pytest.raises(UnscoredError, match=r"\bgsm8k: .*\bJSON\b"):
        compute_score("gsm8k", "Answer: 4", GOLD, {"prompt": "What is 3 + 1?"})


def test_compute_score_without_the_prompt_raises_an_error(bench: Bench, gateway: Gateway) -> None:
    compute_score = make_compute_score(bench.run(gateway.url), WEIGHTS)
    with pytest.raises(RC1Error, match=r"extra_info .*'prompt' .*prompt_key"):
        compute_score("gsm8k", "Answer: 4", GOLD, {"question": "What is 3 + 1?"})
    assert not gateway.requests
