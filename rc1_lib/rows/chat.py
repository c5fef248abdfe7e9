"""Chat dialogues: how calls and answers are written, dialogues as tables, and counts of turns and calls.

A *turn* is a message of the assistant. A *tool hop* is a call of any tool except `ask_user`. A *clarification* is a
call of `ask_user`, or a message of the assistant without a call to which the user replies at once. These are counted
here and nowhere else in RC1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.records import Message

ARGUMENT_OF = {"wiki": "title", "calc": "expression", "ask_user": "question"}
"""Tool -> the name of its one argument."""

ANSWER_MARK = {"en": "Answer: ", "zh": "答案："}
"""Language -> the text before the answer in a final message."""


_TEXT = pl.String()
_CALLS = pl.List(pl.Struct({"function": pl.Struct({"name": pl.String, "arguments": pl.String})}))
_FIELDS: dict[str, pl.DataType] = {"role": _TEXT, "content": _TEXT, "name": _TEXT, "tool_calls": _CALLS}
MESSAGES = pl.List(pl.Struct(_FIELDS))
"""The type of a column of dialogues with only the fields that this module reads."""


def spread_messages(frame: pl.DataFrame) -> pl.DataFrame:
    """Return one line per message: `row` (in `frame`, from 0), `place` (in the dialogue, from 0), and its fields.

    Fields that the messages lack are null. Dialogues that are null or empty have no line.

    Raises:
        RowError: when `frame` has no column `messages` of chat messages.
    """
    found = frame.schema.get("messages")
    message = found.inner if isinstance(found, pl.List) else None
    if not isinstance(message, pl.Struct) or "role" not in {field.name for field in message.fields}:
        raise RowError(
            f"the rows' column 'messages' has the type {found}; expected lists of chat messages with role and content"
        )
    held: dict[str, object] = {field.name: field.dtype for field in message.fields}
    fields = [_field(name, dtype, held) for name, dtype in _FIELDS.items()]
    return (
        frame.select(pl.col("messages").alias("message"))
        .with_row_index("row")
        .with_columns(place=pl.int_ranges(0, pl.col("message").list.len()))
        .explode("message", "place")
        .drop_nulls("message")
        .select("row", "place", *fields)
    )


def spread_calls(messages: pl.DataFrame) -> pl.DataFrame:
    """Return one line per tool call, in order: `row`, `place`, `name`, `arguments`; takes `spread_messages`' frame."""
    function = pl.col("tool_calls").struct.field("function")
    return (
        messages.select("row", "place", "tool_calls")
        .explode("tool_calls")
        .drop_nulls("tool_calls")
        .select("row", "place", function.struct.field("name"), function.struct.field("arguments"))
    )


def per_row(frame: pl.DataFrame, values: pl.DataFrame, name: str, default: float) -> pl.Series:
    """Return the column `name` of `values` for every row of `frame`.

    Args:
        frame: the dialogues.
        values: the columns `row` and `name`, at most one line per row.
        default: the value of rows that `values` lacks; null where `messages` itself is null.
    """
    rows = frame.select(known=pl.col("messages").is_not_null()).with_row_index("row")
    joined = rows.join(values.select("row", name), on="row", how="left", maintain_order="left")
    return joined.select(pl.when("known").then(pl.col(name).fill_null(default)).alias(name)).to_series()


def _field(name: str, dtype: pl.DataType, held: dict[str, object]) -> pl.Expr:
    """Return the field as it is, or null of type `dtype` if no message has a value in it."""
    empty = held.get(name) in (None, pl.Null(), pl.List(pl.Null()))
    value = pl.lit(None, dtype=dtype) if empty else pl.col("message").struct.field(name)
    return value.alias(name)


ASK = "ask_user"
"""The tool that asks the user."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Turns, tool hops and clarifications of one dialogue."""

    turns: int
    tool_hops: int
    clarifications: int


def counts_of(messages: Sequence[Message]) -> Counts:
    """Count turns, tool hops and clarifications of one dialogue."""
    return count(
        (message["role"], [call["function"]["name"] for call in message.get("tool_calls") or ()])
        for message in messages
    )


def count(spoken: Iterable[tuple[str, Sequence[str]]]) -> Counts:
    """Count turns, tool hops and clarifications, given each message's role and the names of the tools it calls."""
    said = list(spoken)
    hops, asked = count_calls([name for _, names in said for name in names])
    plain = sum(
        role == "assistant" and not names and following == "user" for (role, names), (following, _) in pairwise(said)
    )
    return Counts(sum(role == "assistant" for role, _ in said), hops, asked + plain)


def count_calls(names: Sequence[str]) -> tuple[int, int]:
    """Return how many of the called tools are tool hops, and how many ask the user."""
    asked = sum(name == ASK for name in names)
    return len(names) - asked, asked


def add_counts(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the counts of each dialogue in `messages`, whether rows of the pool or any other chat.

    The new columns have the names of the fields of `Counts` (Int64) and are null where `messages` is null.

    Raises:
        RowError: when `frame` has no column `messages` of chat messages.
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
