"""Accuracy by stage: a perfect model scores 1 everywhere, and a mistake lowers only its own stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rc1_lib.extras.base_builder.skill import skill_by_stage
from rc1_lib.training.chat_format import ChatFormat

Change = Callable[[list[int]], list[int]]


class Oracle:
    """A model that predicts the next tokens of its input, after `change`."""

    def __init__(self, size: int, change: Change = list) -> None:
        self._size, self._change = size, change

    def __call__(self, input_ids: Tensor) -> Any:
        following = self._change([*input_ids[0].tolist()[1:], 0])
        return SimpleNamespace(logits=torch.nn.functional.one_hot(torch.tensor([following]), self._size).float())


def stages(rows: list[Mapping[str, Any]]) -> Counter[str]:
    """Count the stages of the messages."""
    found: Counter[str] = Counter()
    for row in rows:
        turns = [message for message in row["messages"] if message["role"] == "assistant"]
        for number, turn in enumerate(turns):
            calls = turn.get("tool_calls") or []
            if not calls:
                found["answer"] += 1
            elif len(calls) == 1:
                found[f"{calls[0]['function']['name']} {'later' if number else 'first'}"] += 1
    return found


def test_always_wrong_model_scores_0_at_every_stage(form: ChatFormat, pool: list[dict[str, Any]]) -> None:
    found = skill_by_stage(Oracle(len(form._tokenizer), lambda ids: [0] * len(ids)), pool[:10], form)
    assert {value for name, value in found.items() if not name.startswith("n ")} == {0.0}


def test_perfect_model_scores_1_at_every_stage(form: ChatFormat, pool: list[dict[str, Any]]) -> None:
    rows = pool[:30]
    found = skill_by_stage(Oracle(len(form._tokenizer)), rows, form)
    counts = stages(rows)
    assert {name for name in found if not name.startswith("n ")} == counts.keys()
    assert all(found[name] == 1.0 and found[f"n {name}"] == count for name, count in counts.items())
