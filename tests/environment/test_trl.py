"""The environment as TRL uses it: tools found among the methods, reset with a row's columns, a reward function."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_type_hints

import pytest

from rc1_lib.environment.rewards import RewardSettings
from rc1_lib.environment.trl import DialogueEnvironment, ToolError, environment_factory
from rc1_lib.errors import RC1Error, RowError
from rc1_lib.extras.exports.reward import reward_function
from rc1_lib.extras.exports.spec import WorldSpec
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


def say(content: str, **calls: dict[str, str]) -> dict[str, Any]:
    entries = [{"type": "function", "function": {"name": name, "arguments": given}} for name, given in calls.items()]
    return {"role": "assistant", "content": content, **({"tool_calls": entries} if entries else {})}


RESULT = {"role": "tool", "name": "ask_user", "content": "It is 39."}
ASKED = (say("", ask_user={"question": "how many jars?"}), RESULT)
LOST = say("", wiki={"title": "Nowhere"})


def reward_for(
    row: dict[str, Any], completion: Completion, bucket: str = "hard", settings: RewardSettings = SETTINGS
) -> list[float]:
    """Call the reward as TRL does, with all columns of one row."""
    columns = {name: [value] for name, value in {**row, "bucket": bucket}.items() if name != "messages"}
    function = reward_function(WorldSpec("", LIMITS, settings))
    return function(prompts=[row["messages"][:2]], completions=[completion], trainer_state=None, **columns)


@pytest.mark.parametrize(
    ("row", "completion", "expected"),
    [
        (STORY, (*ASKED, say("Answer: 384")), 1.05 - 0.06),
        (STORY, (say("Answer: 384"),), 0.0),
        (CLEAR, (say("Answer: 384"),), 1.05 - 0.03),
        (CLEAR, (*ASKED, say("Answer: 384")), 1.05 - 0.07 - 0.06),
        (CLEAR, ASKED, -0.07),
        (CLEAR, (say("", wiki={}),), -0.1),
        (CLEAR, (say("<tool_call>{"),), -0.1),
        (CLEAR, (LOST, LOST, LOST, say("Answer: 384")), 0.0),
        (CLEAR, (), 0.0),
    ],
)
def test_trl_reward_matches_hand_value(row: dict[str, Any], completion: Completion, expected: float) -> None:
    assert reward_for(row, completion) == [pytest.approx(expected, abs=1e-12)]


def test_judge_weight_unknown_bucket_and_missing_columns_are_rejected() -> None:
    answer = (say("Answer: 384"),)
    with pytest.raises(RC1Error, match="judge"):
        reward_for(CLEAR, answer, settings=replace(SETTINGS, judge=0.5))
    with pytest.raises(RowError, match="bucket"):
        reward_for(CLEAR, answer, bucket="steep")
    with pytest.raises(RC1Error, match="user_replies"):
        reward_for({name: value for name, value in CLEAR.items() if name != "user_replies"}, answer)
