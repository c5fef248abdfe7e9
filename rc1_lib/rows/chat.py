"""Chat dialogues as tables: one line a message, one line a tool call."""

from __future__ import annotations

import polars as pl

from rc1_lib.errors import RowError

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
