"""Bases from which PPO can't learn: each gives the same answer to every prompt, or is random."""

from __future__ import annotations

from typing import Any

from transformers import AutoTokenizer

from rc1_lib.run import Run
from rc1_lib.training.chat_format import ChatFormat
from tests.training.tiny_world import random_base, teach

SAYS_YES = "Answer: yes"
MALFORMED = "<tool_call>\nyes\n</tool_call>"


def base_that_says(run: Run, words: str, rows: list[dict[str, Any]]) -> None:
    """Replace the run's base with one that says these words to every prompt."""
    folder = run.workspace.path("base")
    form = ChatFormat(AutoTokenizer.from_pretrained(folder))
    model = random_base(form.tokenizer)
    dialogues = [{**row, "messages": _answered(row["messages"], words)} for row in rows]
    teach(model, form, dialogues, 40)
    model.save_pretrained(folder)


def base_that_rambles(run: Run) -> None:
    """Replace the run's base with a random one, which hardly ever ends a turn."""
    folder = run.workspace.path("base")
    random_base(AutoTokenizer.from_pretrained(folder)).save_pretrained(folder)


def _answered(messages: list[dict[str, Any]], words: str) -> list[dict[str, Any]]:
    first = next(place for place, message in enumerate(messages) if message["role"] == "assistant")
    return [*messages[:first], {"role": "assistant", "content": words}]
