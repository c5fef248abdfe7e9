"""How much happens in a dialogue: turns, tool calls, and questions to the user."""

from __future__ import annotations

import polars as pl

from rc1_lib.reward.chat import per_row, spread_calls, spread_messages

ASK = "ask_user"
"""The tool that asks the user."""


def add_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the counts of each dialogue in `messages`, of the pool or of any other chat.

    `turns`: messages of the assistant. `tool_hops`: tool calls other than `ask_user`. `clarifications`: the assistant's
    calls of `ask_user`, and its messages without a tool call that the user directly replies to. Int64; null where
    `messages` is null.

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
