"""How much happens in a dialogue: turns, tool calls, and questions to the user. Nothing else in RC1 counts these.

A *turn* is a message of the assistant. A *tool hop* is a call of any tool but `ask_user`. A *clarification* is a call
of `ask_user`, or a message of the assistant without a call that the user directly replies to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from rc1_lib.records import Message
from rc1_lib.rows.chat import per_row, spread_calls, spread_messages

ASK = "ask_user"
"""The tool that asks the user."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one dialogue."""

    turns: int
    tool_hops: int
    clarifications: int


def counts_of(messages: Sequence[Message]) -> Counts:
    """The counts of one dialogue."""
    return count(
        (message["role"], [call["function"]["name"] for call in message.get("tool_calls") or ()])
        for message in messages
    )


def count(spoken: Iterable[tuple[str, Sequence[str]]]) -> Counts:
    """The counts of one dialogue, given as the role and the names of the tools called in each of its messages."""
    said = list(spoken)
    hops, asked = count_calls([name for _, names in said for name in names])
    plain = sum(
        role == "assistant" and not names and following == "user" for (role, names), (following, _) in pairwise(said)
    )
    return Counts(sum(role == "assistant" for role, _ in said), hops, asked + plain)


def count_calls(names: Sequence[str]) -> tuple[int, int]:
    """Tool hops and questions among calls of the tools of these names."""
    asked = sum(name == ASK for name in names)
    return len(names) - asked, asked


def add_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the counts of each dialogue in `messages`, of the pool or of any other chat.

    The columns are called as the fields of `Counts`: Int64; null where `messages` is null.

    Raises:
        RowError: when there are no chat messages to count.
    """
    messages = spread_messages(frame)
    of_assistant = pl.col("role") == "assistant"
    silent = pl.col("tool_calls").list.len().fill_null(0) == 0
    replied = (pl.col("role").shift(-1) == "user").fill_null(value=False)
    in_messages = messages.group_by("row").agg(
        turns=of_assistant.sum(),
        plain_questions=(of_assistant & silent & replied).sum(),
    )
    asks = (pl.col("name") == ASK).fill_null(value=False)
    in_calls = spread_calls(messages).group_by("row").agg(tool_hops=(~asks).sum(), asked=asks.sum())
    turns = per_row(frame, in_messages, "turns", 0)
    clarifications = per_row(frame, in_messages, "plain_questions", 0) + per_row(frame, in_calls, "asked", 0)
    return frame.with_columns(
        turns=turns.cast(pl.Int64),
        tool_hops=per_row(frame, in_calls, "tool_hops", 0).cast(pl.Int64),
        clarifications=clarifications.cast(pl.Int64),
    )
