"""The reward of judged dialogues: a weighted sum of medians and rules, or nothing without a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rc1_lib.judge.results import Judged
from rc1_lib.records import Message, Rule
from rc1_lib.reward.rules import RULES, add_rules
from rc1_lib.reward.terms import add_main
from rc1_lib.rows.chat import MESSAGES


@dataclass(frozen=True, slots=True)
class Rated:
    """The reward of one dialogue.

    Attributes:
        reward: weighted sum of the judge's medians and the rules, `main` as computed by `rc1_lib.reward.terms`; None if
            the judge gave no scores.
        reason: why there is no reward; empty if there is one.
        unstable: whether the judge's samples disagree on a criterion by more than `gates.stability.max_variance`.
        models: the versions of the judge that answered.
    """

    reward: float | None
    reason: str
    unstable: bool
    models: tuple[str, ...]


def rated(judged: Judged, dialogues: Sequence[Sequence[Message]], weights: Mapping[str, float]) -> list[Rated]:
    """The reward of each dialogue.

    Args:
        judged: the scores of these dialogues, in the same order.
        dialogues: their chat messages, which the rules read.
        weights: of the judge's criteria and of rules.
    """
    rules: list[Rule] = [name for name in RULES if name in weights]
    rows = judged.rows
    if rules:
        rows = add_rules(rows.with_columns(messages_column(dialogues)), rules).drop("messages")
    found = add_main(rows, weights).select("main", "scored", "reason", "unstable", "models")
    return [
        Rated(main if scored else None, reason, unstable, tuple(models))
        for main, scored, reason, unstable, models in found.iter_rows()
    ]


def messages_column(dialogues: Sequence[Sequence[Message]]) -> pl.Series:
    """The dialogues as a column of chat messages, for the rules."""
    return pl.Series("messages", [[_message(one) for one in messages] for messages in dialogues], dtype=MESSAGES)


def _message(message: Message) -> dict[str, Any]:
    calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
    return {
        "role": message["role"],
        "content": message.get("content"),
        "name": message.get("name"),
        "tool_calls": [{"function": {key: call["function"][key] for key in ("name", "arguments")}} for call in calls],
    }
