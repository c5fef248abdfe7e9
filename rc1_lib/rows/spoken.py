"""All text of a row, wherever it is: as one text per row for measures, and by place for reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from rc1_lib.task_specs import task_names, task_spec

_ROW = ("id", "question", "answer", "final")
_ROW_LISTS = ("support", "aliases")
_STRUCTS = {
    "posed": ("ask", "reason"),
    "slot": ("value", "vague", "wanted"),
    "user_replies": ("gives", "otherwise"),
}
_STRUCT_LISTS = {"posed": ("quoted", "listed")}
_MESSAGE = ("content", "name", "tool_call_id")
_CALL = ("name", "arguments")
_PASSAGE = ("title", "text")


def spoken(rows: pl.DataFrame) -> pl.Series:
    """Return for each row everything that training, environment and reward can read, joined by newlines."""
    message = pl.element().struct
    call = message.field("tool_calls").explode().drop_nulls().struct.field("function").struct
    parts = [
        *(pl.col(name) for name in _ROW),
        *(pl.col("messages").list.eval(message.field(name)).list.join("\n", ignore_nulls=True) for name in _MESSAGE),
        *(pl.col("messages").list.eval(call.field(name)).list.join("\n", ignore_nulls=True) for name in _CALL),
        *(pl.col(name).list.join("\n", ignore_nulls=True) for name in _ROW_LISTS),
        *(pl.col("passages").list.eval(message.field(name)).list.join("\n", ignore_nulls=True) for name in _PASSAGE),
        *(pl.col(name).struct.field(field) for name, fields in _STRUCTS.items() for field in fields),
        *(
            pl.col(name).struct.field(field).list.join("\n", ignore_nulls=True)
            for name, fields in _STRUCT_LISTS.items()
            for field in fields
        ),
    ]
    return rows.select(spoken=pl.concat_str(parts, separator="\n", ignore_nulls=True)).to_series()


def places(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every text of `spoken` after its place, such as `messages[2].content` or `slot.value`."""
    found: list[tuple[str, Any]] = [(name, row[name]) for name in _ROW]
    found += [(f"{name}[{at}]", text) for name in _ROW_LISTS for at, text in enumerate(row[name] or ())]
    for number, message in enumerate(row["messages"] or ()):
        found += [(f"messages[{number}].{name}", message[name]) for name in _MESSAGE]
        for at, call in enumerate(message["tool_calls"] or ()):
            found += [(f"messages[{number}].tool_calls[{at}].{name}", call["function"][name]) for name in _CALL]
    for number, passage in enumerate(row["passages"] or ()):
        found += [(f"passages[{number}].{name}", passage[name]) for name in _PASSAGE]
    for name, fields in _STRUCTS.items():
        found += [(f"{name}.{field}", (row[name] or {}).get(field)) for field in fields]
    for name, fields in _STRUCT_LISTS.items():
        for field in fields:
            found += [(f"{name}.{field}[{at}]", text) for at, text in enumerate((row[name] or {}).get(field) or ())]
    yield from ((place, text) for place, text in found if text)


def question_texts(rows: pl.DataFrame) -> pl.Series:
    """Return what each row asks: its question, preceded by the story of a word problem."""
    story = pl.col("support").list.join("\n") + "\n"
    is_story = pl.col("task").is_in([task for task in task_names() if task_spec(task).word_problem])
    return rows.select(pl.concat_str(pl.when(is_story).then(story).otherwise(pl.lit("")), "question")).to_series()
