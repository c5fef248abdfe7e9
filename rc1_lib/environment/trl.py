"""The environment for TRL's `environment_factory`, without importing TRL (checked against version 1.16).

    GRPOTrainer(..., environment_factory=environment_factory(limits),
                reward_funcs=reward_function(settings))

TRL makes one environment per rollout, calls `reset` with all columns of the row, and treats every other public method
as a tool, which its type hints and docstring describe to the model. TRL shows a tool's exception to the model and
counts a tool failure. The final answer never reaches an environment, so the reward is a function of completions *and*
environments, and there is no `get_reward`. TRL limits turns and tokens (`max_tool_calling_iterations`,
`max_completion_length`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus, outcome_of
from rc1_lib.environment.rewards import RewardSettings, reward_terms
from rc1_lib.environment.turn import CheckedCall, FormatError, Limits, Malformed, Turn, checked_argument, read_message
from rc1_lib.environment.world import World
from rc1_lib.errors import RC1Error, RowError
from rc1_lib.records import BUCKETS, Row
from rc1_lib.rows.chat import count
from rc1_lib.task_specs import answer_in


class ToolError(ValueError):
    """A tool call that failed; the message may be shown to the model."""


RewardFunction = Callable[..., list[float]]
"""A reward as TRL calls it: with `completions`, `environments` and all columns; returns one number per completion."""


class DialogueEnvironment:
    """The environment of one rollout; its public methods, except `reset`, are the tools."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._world: World | None = None

    def reset(self, **row: Any) -> str | None:
        """Open the environment of a row, given as columns of the pool's schema. The prompt comes from the data set."""
        self._world = World(cast("Row", row))
        return None

    def wiki(self, title: str) -> str:
        """Read a page.

        Args:
            title: The title of the page.

        Returns:
            The text of the page.
        """
        return self._run("wiki", title)

    def calc(self, expression: str) -> str:
        """Work out an arithmetic expression, or compare two values.

        Args:
            expression: The expression, for example (3 + 4) * 2 or 12 > 9.

        Returns:
            The value as a number, or yes or no.
        """
        return self._run("calc", expression)

    def ask_user(self, question: str) -> str:
        """Ask the user for something that is missing from the question.

        Args:
            question: The question to the user.

        Returns:
            What the user says.
        """
        return self._run("ask_user", question)

    def _run(self, tool: str, argument: object) -> str:
        world = self._open()
        if world.errors > self._limits.tool_errors:
            raise ToolError("The episode is over: too many tool calls failed.")
        try:
            if not isinstance(argument, str):
                raise ToolError("The argument is no text.")
            observation = world.run(CheckedCall(tool, checked_argument(argument, self._limits)))
        except (FormatError, ToolError) as error:
            world.errors += 1
            raise ToolError(str(error)) from None
        if observation.error:
            raise ToolError(observation.text)
        return observation.text

    def _open(self) -> World:
        if self._world is None:
            raise RuntimeError("the environment has no row yet; call `reset` with one first")
        return self._world

    def _outcome(self, completion: Sequence[Mapping[str, Any]]) -> EpisodeOutcome:
        """Return the outcome of the rollout with the messages `completion`."""
        world = self._open()
        said = completion[-1] if completion and completion[-1].get("role") == "assistant" else None
        turn = None if said is None else read_message(said, self._limits)
        status, answer = EpisodeStatus.MAX_TURNS, ""
        if world.errors > self._limits.tool_errors:
            status = EpisodeStatus.TOOL_ERRORS
        elif isinstance(turn, Malformed):
            status = EpisodeStatus.MALFORMED
        elif isinstance(turn, Turn) and not turn.calls:
            status, answer = EpisodeStatus.ANSWERED, answer_in(world.task, turn.content)
        malformed = int(isinstance(turn, Malformed))
        spoken = count((str(message.get("role")), ()) for message in completion).turns
        # 0 tokens: TRL counts them itself.
        return outcome_of(world, status, answer, turns=spoken, malformed=malformed, tokens=0)


def environment_factory(limits: Limits) -> Callable[[], DialogueEnvironment]:
    """Return a callable that makes environments, for `GRPOTrainer(environment_factory=...)`.

    Args:
        limits: `tool_errors` and `argument_chars` bound the tools, `calls` and `turn_chars` the final message. The
            others are not used, since TRL has its own.
    """
    return partial(DialogueEnvironment, limits)


def reward_function(settings: RewardSettings) -> RewardFunction:
    """Return a reward function for `GRPOTrainer(reward_funcs=...)`, for rows with a column `bucket`.

    Raises:
        RC1Error: when the judge has weight; give TRL the judge as a separate reward function.
    """
    if settings.judge:
        raise RC1Error(
            f"the judge has weight {settings.judge:g} in this reward; with TRL, make it a separate reward function and "
            f"put its weight in `reward_weights`"
        )

    def dialogue_reward(
        completions: Sequence[Sequence[Mapping[str, Any]]],
        environments: Sequence[DialogueEnvironment],
        bucket: Sequence[str],
        **columns: object,
    ) -> list[float]:
        return [
            reward_terms(environment._outcome(completion), _bucket(name), settings).total
            for completion, environment, name in zip(completions, environments, bucket, strict=True)
        ]

    return dialogue_reward


def _bucket(name: str) -> Any:
    if name not in BUCKETS:
        raise RowError(f"a row's bucket is '{name}'; expected one of {', '.join(BUCKETS)}")
    return name
