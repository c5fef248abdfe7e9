"""Bases whose answers are known: always the same one, one of several, or random tokens."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from transformers import AutoTokenizer

from rc1_lib.run import Run
from rc1_lib.training.chat_format import ChatFormat
from tests.training.tiny_world import random_base, teach

SAYS_YES = "Answer: yes"
MALFORMED = "<tool_call>\nyes\n</tool_call>"
SURE = "training.rollout.temperature=0.1"
"""Sampling at this temperature, such a base says its likeliest words, however a CPU rounds."""
_TAUGHT: dict[tuple[str, ...], Any] = {}
"""Words -> weights that say them: every test has the same rows and tokenizer."""


def base_that_says(run: Run, words: str | Sequence[str], rows: list[dict[str, Any]]) -> None:
    """Replace the run's base with one that says these words to every prompt.

    Of several, it says each as often as it is listed.
    """
    said = [words] if isinstance(words, str) else words
    folder = run.workspace.path("base")
    form = ChatFormat(AutoTokenizer.from_pretrained(folder))
    model = random_base(form.tokenizer)
    if tuple(said) not in _TAUGHT:
        dialogues = [
            {**row, "messages": _answered(row["messages"], said[place % len(said)])} for place, row in enumerate(rows)
        ]
        teach(model, form, dialogues, 60)
        _TAUGHT[tuple(said)] = copy.deepcopy(model.state_dict())
    model.load_state_dict(_TAUGHT[tuple(said)])
    model.save_pretrained(folder)


def base_that_rambles(run: Run) -> None:
    """Replace the run's base with a random one, which hardly ever ends a turn."""
    folder = run.workspace.path("base")
    random_base(AutoTokenizer.from_pretrained(folder)).save_pretrained(folder)


def _answered(messages: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    first = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
    return [*messages[:first], {"role": "assistant", "content": words}]
