"""Play a policy that asks first, or never asks: the two baselines of a policy that decides when to ask."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from enum import StrEnum

from rc1_lib.environment.markers import CALL
from rc1_lib.environment.turn import CheckedCall
from rc1_lib.records import FunctionCall, Message
from rc1_lib.rows.chat import ASK
from rc1_lib.training.chat_format import ChatFormat


class Asking(StrEnum):
    """Who decides whether an episode asks the user."""

    FREE = "free"
    """The policy."""
    FIRST = "first"
    """Its first turn begins as a question does, whatever the policy would do. The policy words it, and then decides."""
    NEVER = "never"
    """The policy cannot sample the beginning of a question."""


_NAME = re.compile(r'"name"\s*:\s*"([^"]+)')
_TAIL = 16
"""Characters before a token in which the place of a tool's name is recognised."""


def opening_of_a_question(chat: ChatFormat) -> tuple[int, ...]:
    """Return the tokens with which every question begins: all before its first word."""
    which, how = (chat.turn_ids(_question(words)) for words in ("Which one?", "How many?"))
    return tuple(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(which, how, strict=False)))


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


def _question(words: str) -> Message:
    function: FunctionCall = {"name": ASK, "arguments": CheckedCall(ASK, words).arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_0", "type": "function", "function": function}],
    }
