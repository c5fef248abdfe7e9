"""The judge as a reward of training libraries, called in their forms over loopback."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.extras.adapters.trl import judge_reward, judge_reward_async
from rc1_lib.extras.adapters.verl import UnscoredError, make_compute_score
from rc1_lib.judge.calls import NOTICE
from rc1_lib.judge.judge import open_judge, open_store
from rc1_lib.judge.results import JudgeStoppedError
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.reward.weighted_judge import RewardLog
from rc1_lib.run import Run, published_config
from rc1_lib.testing.judge_server import Behaviour, FaultKind, JudgeServer, running
from tests.judge.bench import Bench, dialogue
from tests.judge.gateway import Gateway, completion

WEIGHTS = {"weights": dict(published_config().reward.old_weights)}
AT_ONCE = Behaviour(delay="zero")
REFUSING = Behaviour(delay="zero", faults={FaultKind.REFUSAL: 1.0})
GOLD = "the-gold-answer-is-4711"
CALL = {"name": "calc", "arguments": '{"expression":"1+1"}'}


def texts(*numbers: int) -> tuple[list[str], list[str]]:
    """Prompts and completions as texts."""
    both = [[message["content"] for message in dialogue(number)] for number in numbers]
    return [one[0] for one in both], [one[1] for one in both]


def run_at(bench: Bench, server: JudgeServer, *more: str) -> Run:
    return bench.run(server.base_url, "judge.samples=2", *more)


def expected(run: Run, *numbers: int) -> list[float]:
    """The weighted sums of the medians that are stored."""
    with open_store(run) as store:
        judged = open_judge(run, store).score([dialogue(number) for number in numbers])
    assert judged.calls == 0
    return [sum(weight * row[name] for name, weight in WEIGHTS["weights"].items()) for row in judged.rows.to_dicts()]


# ---- TRL ----


def test_reward_is_the_weighted_sum_of_medians(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server)
        reward = judge_reward(run, WEIGHTS)
        given = reward(*texts(1, 2, 1), answer=[GOLD] * 3, trainer_state=object())
        assert given == expected(run, 1, 2, 1)
        assert server.stats().requests == 4
    assert given[0] == given[2] != given[1]
    assert reward.__name__ == "rc1_judge"


def test_bare_weights_and_a_name_of_ones_own(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server)
        reward = judge_reward(run, WEIGHTS["weights"], name="judged")
        assert (reward.__name__, reward(*texts(1))) == ("judged", expected(run, 1))
        assert reward([], []) == []


def test_texts_and_messages_are_the_same_dialogue(bench: Bench) -> None:
    prompts, completions = texts(1)
    with running(AT_ONCE) as server:
        reward = judge_reward(run_at(bench, server), WEIGHTS)
        first = reward(prompts, completions)
        as_messages = reward(
            [[{"role": "user", "content": prompts[0]}]], [[{"role": "assistant", "content": completions[0]}]]
        )
        as_parts = reward(prompts, [[{"content": [{"type": "text", "text": completions[0]}], "tool_calls": None}]])
        assert first == as_messages == as_parts
        assert server.stats().requests == 2


def test_tool_calls_with_arguments_as_objects_are_those_with_arguments_as_text() -> None:
    ended = {"role": "tool", "content": "2"}, {"role": "assistant", "content": "Answer: 2"}
    calls = [
        {"role": "assistant", "tool_calls": [{"type": "function", "function": {**CALL, "arguments": arguments}}]}
        for arguments in (CALL["arguments"], {"expression": "1+1"})
    ]
    as_text, as_object = (dialogue_of("What is 1+1?", [call, *ended], "it") for call in calls)
    assert as_text == as_object
    assert as_text[1]["tool_calls"] == [{"type": "function", "function": CALL}]


@pytest.mark.parametrize(
    ("prompt", "completed", "told"),
    [
        ("a", None, "found a NoneType"),
        (["a"], "b", "message 1 is not an object"),
        ("a", [{"role": "assistant", "content": [{"type": "image_url", "image_url": "x"}]}], "has a list"),
        ([{"role": "user", "content": "a"}], [{"role": "tool", "content": "b"}], "no message is the assistant's"),
        ("a", [{"role": "assistant", "tool_calls": [{"name": "calc"}]}], "a tool call whose function lacks a name"),
    ],
)
def test_what_is_no_dialogue_is_refused_by_place(prompt: Any, completed: Any, told: str) -> None:
    with pytest.raises(RC1Error, match=rf"^completion 3: .*{told}"):
        dialogue_of(prompt, completed, "completion 3")


def test_lists_of_unequal_length_are_refused(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        reward = judge_reward(run_at(bench, server), WEIGHTS)
        with pytest.raises(RC1Error, match=r"\b2 prompts .*\b1 completions"):
            reward(["a", "b"], ["c"])
        assert server.stats().requests == 0


def test_unscored_is_none_never_zero(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server)
        reward = judge_reward(run, WEIGHTS)
        good = reward(*texts(1, 2))
        server.behaviour = REFUSING
        assert reward(*texts(1, 3, 2)) == [good[0], None, good[1]]


def test_coverage_below_the_floor_ends_the_training_once_enough_were_asked(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server, "gates.stability.last=10", "gates.shared.min_coverage=0.75")
        reward = judge_reward(run, WEIGHTS)
        reward(*texts(*range(5)))
        server.behaviour = REFUSING
        assert reward(*texts(*range(10, 14))) == [None] * 4  # 5 of 9: too few, but not yet enough to say so
        with pytest.raises(RC1Error, match=r"50\.0% of 10 .* 75% \(gates\.shared\.min_coverage\).*declined"):
            reward(*texts(20))


def test_a_judge_that_falls_silent_late_is_noticed_whatever_the_mean_coverage(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server, "gates.stability.last=4", "gates.shared.min_coverage=0.1")
        reward = judge_reward(run, WEIGHTS)
        reward(*texts(*range(12)))
        server.behaviour = REFUSING
        assert reward(*texts(20, 21, 22)) == [None] * 3
        with pytest.raises(RC1Error, match=r"last 4 dialogues"):
            reward(*texts(23))


def test_works_inside_a_running_loop(bench: Bench) -> None:
    async def train(reward: Callable[..., Any]) -> Any:
        return reward(*texts(1, 2))

    with running(AT_ONCE) as server:
        run = run_at(bench, server)
        assert asyncio.run(train(judge_reward(run, WEIGHTS))) == expected(run, 1, 2)


def test_errors_cross_from_the_other_loop_as_they_are(bench: Bench) -> None:
    async def train(reward: Callable[..., Any]) -> Any:
        return reward(*texts(1, 2))

    with running(Behaviour(delay="zero", api_key="another-key")) as server:
        reward = judge_reward(run_at(bench, server), WEIGHTS)
        with pytest.raises(JudgeStoppedError, match="HTTP 401"):
            asyncio.run(train(reward))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What a shell starts in the background ignores Ctrl-C, and so would the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interruption_ends_a_call_inside_a_running_loop(bench: Bench, interruptible: None) -> None:
    """asyncio.run turns Ctrl-C into the cancellation of a task that this call keeps from running."""

    async def train(reward: Callable[..., Any]) -> Any:
        threading.Thread(target=interrupt_when_asked).start()
        return reward(*texts(1))

    def interrupt_when_asked() -> None:
        while not server.stats().requests:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    with running(Behaviour(faults={FaultKind.HANG: 1.0})) as server:
        reward = judge_reward(run_at(bench, server), WEIGHTS)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(train(reward))
    assert set(bench.outcomes()) == {"cancelled"}


def test_asynchronous_form_is_a_coroutine_function_with_the_same_rewards(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server)
        reward = judge_reward_async(run, WEIGHTS)
        assert inspect.iscoroutinefunction(reward)
        assert reward.__name__ == "rc1_judge"
        assert asyncio.run(reward(*texts(1, 2), answer=[GOLD] * 2)) == expected(run, 1, 2)  # type: ignore[arg-type]


def test_a_judge_over_an_open_store_serves_as_well(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server)
        with open_store(run) as store:
            judge = open_judge(run, store)
            with pytest.raises(ConfigError, match=r"gates=run\.config\.gates"):
                judge_reward(judge, WEIGHTS)
            given = judge_reward(judge, WEIGHTS, gates=run.config.gates)(*texts(1, 2))
        assert given == expected(run, 1, 2)


def test_budget_is_that_of_all_calls_together(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        reward = judge_reward(run_at(bench, server, "judge.budget.max_calls=6"), WEIGHTS)
        reward(*texts(1, 2))
        with pytest.raises(JudgeStoppedError, match=r"judge\.budget\.max_calls \(6\)"):
            reward(*texts(3, 4))
        assert server.stats().requests == 6


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ({"weights": {"answered": 0.5, "kind": 0.5}}, "unknown dimensions is 1"),
        ({"answered": 0.5, "grounded": 5.0}, "largest weight is 5.0"),
        ({"answered": -0.5, "grounded": 0.5}, "smallest weight is -0.5"),
        ({"answered": 0.2, "grounded": 0.2}, "sum is 0.4"),
        ({"answered": True, "grounded": 0.5}, "every weight is a number is False"),
        ({"weights": {}}, "weights present is False"),
    ],
)
def test_weights_are_refused_by_their_gate(bench: Bench, weights: dict[str, Any], told: str) -> None:
    run = bench.run("http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match=f"{told}.* 'v1' "):
        judge_reward(run, weights)


def test_a_judge_that_cannot_be_asked_is_told_before_the_training(bench: Bench) -> None:
    with pytest.raises(ConfigError):
        judge_reward(bench.run("http://127.0.0.1:1/v1", "judge.model=null"), WEIGHTS)


# ---- verl ----


def test_compute_score_gives_a_number_and_hides_the_answer(bench: Bench, gateway: Gateway) -> None:
    run = bench.run(gateway.url)
    compute_score = make_compute_score(run, WEIGHTS)
    asked = {"prompt": ({"role": "user", "content": "What is 3 + 1?"},), "answer": GOLD, "index": 7}
    given = compute_score(
        data_source="gsm8k", solution_str="Answer: 4", ground_truth=GOLD, extra_info=asked, reward_router_address=None
    )
    assert given == pytest.approx(0.5)
    assert compute_score("gsm8k", "Answer: 4", GOLD, {"prompt": "What is 3 + 1?"}) == given
    assert len(gateway.requests) == run.config.judge.samples
    assert all("What is 3 + 1?" in body and "Answer: 4" in body for body in gateway.requests)
    assert not any(GOLD in body for body in gateway.requests)
    kept = b"".join(path.read_bytes() for path in Path(bench.folder).rglob("*") if path.is_file())
    assert b"Answer: 4" in kept
    assert GOLD.encode() not in kept


def test_compute_score_never_makes_up_a_number(bench: Bench, gateway: Gateway) -> None:
    gateway.replies = lambda number, body, headers: completion("I would rather not.")
    compute_score = make_compute_score(bench.run(gateway.url), WEIGHTS)
    with pytest.raises(UnscoredError, match=r"\bgsm8k: .*\bJSON\b"):
        compute_score("gsm8k", "Answer: 4", GOLD, {"prompt": "What is 3 + 1?"})


@pytest.mark.parametrize("extra", [None, {}, {"question": "What is 3 + 1?"}])
def test_compute_score_wants_the_prompt(bench: Bench, gateway: Gateway, extra: dict[str, Any] | None) -> None:
    compute_score = make_compute_score(bench.run(gateway.url), WEIGHTS)
    with pytest.raises(RC1Error, match=r"extra_info .*'prompt' .*prompt_key"):
        compute_score("gsm8k", "Answer: 4", GOLD, extra)
    assert not gateway.requests


def test_compute_score_may_be_called_by_many_threads(bench: Bench) -> None:
    with running(AT_ONCE) as server:
        run = run_at(bench, server)
        compute_score = make_compute_score(run, WEIGHTS, prompt_key="question")
        prompts, completions = texts(*range(12))
        with ThreadPoolExecutor(4) as pool:
            given = list(
                pool.map(lambda one: compute_score("gsm8k", one[1], GOLD, {"question": one[0]}),
                         zip(prompts, completions, strict=True))
            )  # fmt: skip
        assert given == expected(run, *range(12))
        assert server.stats().requests == 24


def test_a_test_double_is_told_once_and_reasons_each_time(caplog: pytest.LogCaptureFixture) -> None:
    reasons = [(f"reason {number}", 9 - number) for number in range(4)]
    judged: Any = SimpleNamespace(test_double=True, reasons=reasons, rows=range(40))
    log = RewardLog("episodes")
    log.warn(judged)
    told = [f"{9 - number} of 40 episodes are unscored: reason {number}" for number in range(3)]
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("rc1.reward", words) for words in (NOTICE, *told)
    ]
    caplog.clear()
    log.warn(judged)
    assert caplog.messages == told
