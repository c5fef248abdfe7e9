"""Play a policy that asks first, or never asks: the two baselines of a policy that decides when to ask."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.markers import CALL
from rc1_lib.environment.outcome import EpisodeStatus
from rc1_lib.environment.turn import CheckedCall
from rc1_lib.records import FunctionCall, Language, Message, Tool
from rc1_lib.rows.chat import ASK
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.rollout.decoder import RolloutError


class Asking(StrEnum):
    """Who decides whether an episode asks the user."""

    FREE = "free"
    """The policy."""
    FIRST = "first"
    """Its first turn is a question in general words, whatever the policy would do. Then the policy decides."""
    NEVER = "never"
    """The policy cannot sample the beginning of a question."""


_QUESTIONS: dict[Language, str] = {"en": "What exactly do you mean?", "zh": "你具体想问什么?"}
_NAME = re.compile(r'"name"\s*:\s*"([^"]+)')
_TAIL = 16
"""Characters before a token in which the place of a tool's name is recognised."""


def ask_first(episode: Episode) -> None:
    """Let an episode that has not begun ask the user what is meant; who lacks something is given it.

    Raises:
        RolloutError: if the limits end the episode with the reply.
    """
    episode.send(_turn("ask_user", _QUESTIONS[episode.world.lang]))
    if episode.status is not EpisodeStatus.RUNNING:
        limit = "turns" if episode.status is EpisodeStatus.MAX_TURNS else "tokens"
        raise RolloutError(
            f"training.limits.{limit}: found {getattr(episode.limits, limit)}, which ends a dialogue with the reply to "
            "its first question; raise it, so that an answer can follow"
        )


class Ban:
    """Tokens that a policy may not sample next, because a question would begin: those that begin the tool's name.

    It looks at text, since a policy that may not write the usual tokens of a name writes it in others.
    """

    def __init__(self, chat: ChatFormat) -> None:
        """Read the tokens of a model."""
        self._chat = chat
        self._texts = [chat.decode([token]) for token in range(len(chat.tokenizer))]
        self._begin: dict[str, list[int]] = {}

    def tokens(self, turn: Sequence[int]) -> list[int]:
        """Return the tokens that may not follow the tokens of this unfinished turn; mostly none."""
        _, opened, call = self._chat.decode(turn).rpartition(CALL)
        if not opened or _NAME.search(call):
            return []
        before = call[-_TAIL:]
        if before not in self._begin:
            self._begin[before] = [token for token, text in enumerate(self._texts) if _begins_question(before + text)]
        return self._begin[before]


def _begins_question(text: str) -> bool:
    named = _NAME.search(text)
    return named is not None and (ASK.startswith(named[1]) or named[1].startswith(ASK))


def _turn(tool: Tool, argument: str) -> Message:
    call = CheckedCall(tool, argument)
    function: FunctionCall = {"name": tool, "arguments": call.arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
    }
