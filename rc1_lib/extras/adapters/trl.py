"""The judge as a reward function for TRL (`GRPOTrainer(reward_funcs=...)`): `f(prompts, completions, **columns)`.

The judge does not see the columns of the data set, so a gold answer stays hidden. A completion without a score gets
None, which TRL turns into NaN and leaves out of the sum over its reward functions. If every function returns None for a
completion, TRL warns; the required share of scored completions keeps this rare.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from rc1_lib.config.thresholds import Gates
from rc1_lib.errors import RC1Error
from rc1_lib.judge.judge import Judge
from rc1_lib.records import Message
from rc1_lib.reward.chat import dialogue_of
from rc1_lib.reward.weighted_judge import WeightedJudge, finish
from rc1_lib.run import Run

Rewards = list[float | None]
_F = TypeVar("_F", bound=Callable[..., Any])


def judge_reward(
    judge_or_run: Judge | Run, weights: Mapping[str, Any], *, gates: Gates | None = None, name: str = "rc1_judge"
) -> Callable[..., Rewards]:
    """Create a reward function that can be called anywhere, even while an event loop is running.

    Args:
        judge_or_run: the judge; usually a run, see `WeightedJudge`.
        weights: as in configs/weights.json.
        gates: thresholds, if a judge is given instead of a run.
        name: the function's `__name__`, under which TRL logs its rewards.

    Returns:
        `f(prompts, completions, **columns)`; prompts and completions are strings or lists of chat messages. It raises
        `RC1Error` if the judge stopped or too few completions have scores.

    Raises:
        ConfigError: if the weights are rejected, or the judge cannot be asked.
    """
    weighted = WeightedJudge(judge_or_run, weights, gates)

    def reward(prompts: Sequence[object], completions: Sequence[object], **columns: object) -> Rewards:
        return finish(partial(_rewards, weighted, _dialogues(prompts, completions)))

    return _named(reward, name)


def judge_reward_async(
    judge_or_run: Judge | Run, weights: Mapping[str, Any], *, gates: Gates | None = None, name: str = "rc1_judge"
) -> Callable[..., Awaitable[Rewards]]:
    """Create the same as a coroutine function, which TRL runs concurrently with other asynchronous reward functions."""
    weighted = WeightedJudge(judge_or_run, weights, gates)

    async def reward(prompts: Sequence[object], completions: Sequence[object], **columns: object) -> Rewards:
        return await _rewards(weighted, _dialogues(prompts, completions))

    return _named(reward, name)


async def _rewards(weighted: WeightedJudge, dialogues: Sequence[Sequence[Message]]) -> Rewards:
    return [one.reward for one in await weighted.rate(dialogues)]


def _dialogues(prompts: Sequence[object], completions: Sequence[object]) -> list[list[Message]]:
    if len(prompts) != len(completions):
        raise RC1Error(f"found {len(prompts)} prompts and {len(completions)} completions, expected equal numbers")
    pairs = zip(prompts, completions, strict=True)
    return [dialogue_of(prompt, completion, f"completion {place}") for place, (prompt, completion) in enumerate(pairs)]


def _named(function: _F, name: str) -> _F:
    function.__name__ = function.__qualname__ = name
    return function
