"""Bases whose answers are known: always the same one, one of several, or random tokens."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from transformers import AutoTokenizer

from rc1_lib.records import Message
from rc1_lib.run import Run
from rc1_lib.training.chat_format import ChatFormat
from tests.training.tiny_world import random_base, teach

SAYS_YES = "Answer: yes"
MALFORMED = "<tool_call>\nyes\n</tool_call>"
ASKS: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {"type": "function", "function": {"name": "ask_user", "arguments": '{"question":"What do you mean?"}'}}
    ],
}
SURE = "training.rollout.temperature=0.1"
"""Sampling at this temperature, such a base says its likeliest words, however a CPU rounds."""
_TAUGHT: dict[tuple[bool | str, ...], Any] = {}
"""Whether it can ask, and its words -> weights that say them: every test has the same rows and tokenizer."""


def base_that_says(run: Run, words: str | Sequence[str], rows: list[dict[str, Any]], *, can_ask: bool = False) -> None:
    """Replace the run's base with one that says these words to every prompt.

    Of several, it says each as often as it is listed.
    With `can_ask` it has also learned to word a question, in a third of the dialogues, and to say these words after it.
    """
    said = [words] if isinstance(words, str) else words
    folder = run.workspace.path("base")
    form = ChatFormat(AutoTokenizer.from_pretrained(folder))
    model = random_base(form.tokenizer)
    key = (can_ask, *said)
    if key not in _TAUGHT:
        turns = (False, False, True) if can_ask else (False,)
        dialogues = [
            {**row, "messages": _answered(row, said[place % len(said)], asks=asks)}
            for place, row in enumerate(rows)
            for asks in turns
        ]
        teach(model, form, dialogues, 150 if can_ask else 60)
        _TAUGHT[key] = copy.deepcopy(model.state_dict())
    model.load_state_dict(_TAUGHT[key])
    model.save_pretrained(folder)


def base_that_rambles(run: Run) -> None:
    """Replace the run's base with a random one, which hardly ever ends a turn."""
    folder = run.workspace.path("base")
    random_base(AutoTokenizer.from_pretrained(folder)).save_pretrained(folder)


def _answered(row: dict[str, Any], words: str, *, asks: bool) -> list[dict[str, Any]]:
    messages = row["messages"]
    first = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
    replies = row["user_replies"]
    told = {"role": "tool", "name": "ask_user", "content": replies["gives"] or replies["otherwise"]}
    return [*messages[:first], *([ASKS, told] if asks else []), {"role": "assistant", "content": words}]
