"""The environment as TRL uses it: tools found among the methods, reset with a row's columns, a reward function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_type_hints

import pytest

from rc1_lib.environment.trl import DialogueEnvironment, ToolError, environment_factory, reward_function
from rc1_lib.errors import RC1Error, RowError
from tests.environment.test_rewards import SETTINGS
from tests.environment.worlds import CLEAR, LIMITS, STORY

Completion = Sequence[Mapping[str, Any]]


def opened(row: dict[str, Any] = STORY) -> DialogueEnvironment:
    environment = environment_factory(LIMITS)()
    assert environment.reset(**row, prompt=row["messages"][:2], bucket="hard") is None
    return environment


def tools_of(environment: DialogueEnvironment) -> list[str]:
    """Find the tools as `GRPOTrainer` does."""
    functions = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    return [name for name, _ in functions if name not in ("reset", "get_reward") and not name.startswith("_")]


def test_trl_finds_three_tools_with_descriptions() -> None:
    environment = opened()
    assert tools_of(environment) == ["ask_user", "calc", "wiki"]
    for name in tools_of(environment):
        tool = getattr(environment, name)
        hints = get_type_hints(tool)
        assert list(hints.values()) == [str, str]
        (argument,) = inspect.signature(tool).parameters
        assert f"{argument}: " in (inspect.getdoc(tool) or "").split("Args:")[1].split("Returns:")[0]


def test_reset_forgets_the_previous_row() -> None:
    environment = opened()
    assert environment.ask_user("how many jars?") == "It is 39."
    environment.reset(**CLEAR)
    assert environment.ask_user("how many jars?") == "Nothing is missing."
    assert environment._open().asked == 1


def test_failed_calls_raise_and_too_many_end_the_episode() -> None:
    environment = opened()
    failing: list[Any] = ["Nowhere", 5, "<|im_end|>"]
    for title in failing:
        with pytest.raises(ToolError, match=r"^[A-Z].*\.$"):
            environment.wiki(title)
    with pytest.raises(ToolError, match="over"):
        environment.wiki("Wyrrudex")


def say(content: str, *calls: str) -> dict[str, Any]:
    entries = [{"type": "function", "function": {"name": name, "arguments": {}}} for name in calls]
    return {"role": "assistant", "content": content, **({"tool_calls": entries} if entries else {})}


RESULT = {"role": "tool", "name": "ask_user", "content": "It is 39."}
ASKED = (say("", "ask_user"), RESULT)


@pytest.mark.parametrize(
    ("row", "asks", "completion", "expected"),
    [
        (STORY, 1, (*ASKED, say("Answer: 384")), 1.05 - 0.06),
        (STORY, 0, (say("Answer: 384"),), 0.0),
        (CLEAR, 0, (say("Answer: 384"),), 1.05 - 0.03),
        (CLEAR, 1, (*ASKED, say("Answer: 384")), 1.05 - 0.07 - 0.06),
        (CLEAR, 1, ASKED, -0.07),
        (CLEAR, 0, (say("", "wiki"),), -0.1),
        (CLEAR, 0, (say("<tool_call>{"),), -0.1),
        (CLEAR, 0, (), 0.0),
    ],
)
def test_trl_reward_matches_hand_value(row: dict[str, Any], asks: int, completion: Completion, expected: float) -> None:
    environment = opened(row)
    for _ in range(asks):
        environment.ask_user("how many jars?")
    function = reward_function(SETTINGS)
    found = function(
        prompts=[row["messages"][:2]], completions=[completion], environments=[environment], bucket=["hard"],
        trainer_state=None,
    )  # fmt: skip
    assert found == [pytest.approx(expected, abs=1e-12)]
    assert function.__name__ == "dialogue_reward"


def test_answer_after_too_many_failed_calls_earns_nothing() -> None:
    environment = opened(CLEAR)
    for _ in range(LIMITS.tool_errors + 1):
        with pytest.raises(ToolError):
            environment.wiki("Nowhere")
    found = reward_function(SETTINGS)([[say("Answer: 384")]], [environment], ["medium"])
    assert found == [0.0]


def test_judge_weight_and_unknown_bucket_are_rejected() -> None:
    with pytest.raises(RC1Error, match="reward_weights"):
        reward_function(replace(SETTINGS, judge=0.5))
    with pytest.raises(RowError, match="bucket"):
        reward_function(SETTINGS)([[say("Answer: 384")]], [opened(CLEAR)], ["steep"])
