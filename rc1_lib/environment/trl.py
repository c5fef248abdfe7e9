"""The environment for TRL's `environment_factory`, without importing TRL (checked against version 1.16).

    GRPOTrainer(..., environment_factory=environment_factory(limits), reward_funcs=reward_function(spec))

TRL makes one environment per rollout, calls `reset` with all columns of the row, and treats every other public method
as a tool, which its type hints and docstring describe to the model. TRL shows a tool's exception to the model and
counts a tool failure. The final answer never reaches an environment, so there is no `get_reward`: the reward
(`rc1_lib.extras.exports.reward`) plays the completion's messages again. TRL limits turns and tokens
(`max_tool_calling_iterations`, `max_completion_length`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from rc1_lib.environment.turn import CheckedCall, FormatError, Limits, checked_argument
from rc1_lib.environment.world import World
from rc1_lib.records import Row


class ToolError(ValueError):
    """A tool call that failed; the message may be shown to the model."""


class DialogueEnvironment:
    """The environment of one rollout; its public methods, except `reset`, are the tools."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._world: World | None = None

    def reset(self, **row: Any) -> str | None:
        """Open the environment of a row, given as columns of the pool's schema.

        The prompt comes from the data set, whose column `prompt` may stand for the whole `messages`.
        """
        self._world = World(cast("Row", {"messages": row.get("prompt"), **row}))
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


def environment_factory(limits: Limits) -> Callable[[], DialogueEnvironment]:
    """Return a callable that makes environments, for `GRPOTrainer(environment_factory=...)`.

    Args:
        limits: `tool_errors` and `argument_chars` bound the tools; the others bound the reward alone, or TRL has its
            own.
    """
    return partial(DialogueEnvironment, limits)
