"""Chat dialogues: how a call and an answer are written, as tables, and how much happens in them.

A *turn* is a message of the assistant. A *tool hop* is a call of any tool but `ask_user`. A *clarification* is a call
of `ask_user`, or a message of the assistant without a call that the user directly replies to. Nothing else in RC1
counts these.
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
"""Language -> what comes before the answer in a final message."""


_TEXT = pl.String()
_CALLS = pl.List(pl.Struct({"function": pl.Struct({"name": pl.String, "arguments": pl.String})}))
_WANTED: dict[str, pl.DataType] = {"role": _TEXT, "content": _TEXT, "name": _TEXT, "tool_calls": _CALLS}
MESSAGES = pl.List(pl.Struct(_WANTED))
"""The type of a column of dialogues with the fields that are read here, and no others."""


def spread_messages(frame: pl.DataFrame) -> pl.DataFrame:
    """One line a message: `row` (of `frame`, from 0), `place` (in the dialogue, from 0), and the message's fields.

    Fields that the messages lack are null. Dialogues that are null or empty have no line.

    Raises:
        RowError: when `frame` has no column `messages` that holds chat messages.
    """
    found = frame.schema.get("messages")
    message = found.inner if isinstance(found, pl.List) else None
    if not isinstance(message, pl.Struct) or "role" not in {field.name for field in message.fields}:
        raise RowError(
            f"the rows' column 'messages' is {found}, expected lists of chat messages with a role and content"
        )
    held: dict[str, object] = {field.name: field.dtype for field in message.fields}
    fields = [_field(name, wanted, held) for name, wanted in _WANTED.items()]
    return (
        frame.select(pl.col("messages").alias("message"))
        .with_row_index("row")
        .with_columns(place=pl.int_ranges(0, pl.col("message").list.len()))
        .explode("message", "place")
        .drop_nulls("message")
        .select("row", "place", *fields)
    )


def spread_calls(messages: pl.DataFrame) -> pl.DataFrame:
    """One line a tool call, from the lines of `spread_messages`: `row, place, name, arguments`, in order."""
    function = pl.col("tool_calls").struct.field("function")
    return (
        messages.select("row", "place", "tool_calls")
        .explode("tool_calls")
        .drop_nulls("tool_calls")
        .select("row", "place", function.struct.field("name"), function.struct.field("arguments"))
    )


def per_row(frame: pl.DataFrame, values: pl.DataFrame, name: str, default: float) -> pl.Series:
    """The column `name` of `values` (one line for some of the rows) for every row of `frame`.

    Args:
        frame: the dialogues.
        values: `row` and `name`.
        name: which column is wanted.
        default: for rows without a line; where `messages` itself is null the result is null.
    """
    rows = frame.select(known=pl.col("messages").is_not_null()).with_row_index("row")
    joined = rows.join(values.select("row", name), on="row", how="left", maintain_order="left")
    return joined.select(pl.when("known").then(pl.col(name).fill_null(default)).alias(name)).to_series()


def _field(name: str, wanted: pl.DataType, held: dict[str, object]) -> pl.Expr:
    """The field as it is, or null of the wanted type where the messages have none or never fill it."""
    empty = held.get(name) in (None, pl.Null(), pl.List(pl.Null()))
    value = pl.lit(None, dtype=wanted) if empty else pl.col("message").struct.field(name)
    return value.alias(name)


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
