"""The type `Row`, the rows that RC1 writes and the columns of frames agree."""

from __future__ import annotations

from functools import cache
from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

import orjson
import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.records import Message, Row
from rc1_lib.rows.frame import ROW_COLUMNS, columns_of


@cache
def hints_of(kind: Any) -> tuple[dict[str, Any], set[str]]:
    """Return the types of a typed dictionary's keys, and the required keys."""
    marked = get_type_hints(kind, include_extras=True)
    return get_type_hints(kind), {name for name, one in marked.items() if get_origin(one) is not NotRequired}


def misfits(value: object, hint: Any, place: str = "row") -> list[str]:
    """List the places in which a value differs from a type made of the kinds that rows use."""
    if is_typeddict(hint):
        if not isinstance(value, dict):
            return [f"{place} is no object"]
        hints, needed = hints_of(hint)
        found = [f"{place}.{name} is missing" for name in needed - value.keys()]
        found += [f"{place}.{name} is unknown" for name in value.keys() - hints.keys()]
        return found + [
            one for key in value if key in hints for one in misfits(value[key], hints[key], f"{place}.{key}")
        ]
    if get_origin(hint) is list:
        if not isinstance(value, list):
            return [f"{place} is no list"]
        return [one for item in value for one in misfits(item, get_args(hint)[0], f"{place}[]")]
    if str(get_origin(hint)) == "typing.Literal":
        return [] if value in get_args(hint) else [f"{place} is {value!r}"]
    if get_args(hint):
        return [] if any(not misfits(value, one) for one in get_args(hint)) else [f"{place} is {value!r}"]
    return (
        [] if isinstance(value, hint) and not (hint is int and isinstance(value, bool)) else [f"{place} is {value!r}"]
    )


@pytest.mark.parametrize("name", ["pool", "shadow", "takes", "balanced"])
def test_every_written_row_matches_the_type_with_its_keys_in_order(evidence: Evidence, name: str) -> None:
    with evidence.path(name).open("rb") as lines:
        for line in lines:
            row = orjson.loads(line)
            assert misfits(row, Row) == []
            assert list(row) == list(Row.__annotations__)


def test_misfits_finds_each_kind_of_mismatch(evidence: Evidence) -> None:
    with evidence.path("pool").open("rb") as lines:
        row = orjson.loads(next(lines))
    damaged = {**row, "use": True, "support": ["x", 5], "extra": 1, "user_replies": {"gives": None}}
    del damaged["answer"]
    damaged["messages"] = [{"role": "user", "content": "?", "tool_calls": [{"type": "tool"}]}]
    assert {one.split(" ")[0] for one in misfits(damaged, Row)} == {
        "row.use", "row.support[]", "row.extra", "row.answer", "row.user_replies", "row.messages[].tool_calls",
    }  # fmt: skip


def test_the_columns_of_frames_are_the_keys_of_rows() -> None:
    assert list(ROW_COLUMNS) == list(Row.__annotations__)
    assert ROW_COLUMNS["user_replies"] == pl.Struct({"gives": pl.String, "otherwise": pl.String})
    assert ROW_COLUMNS["messages"] == pl.List(pl.Struct(columns_of(Message)))
    assert ROW_COLUMNS["use"] == pl.Int64 and ROW_COLUMNS["cue"] == pl.Boolean


def test_frames_contain_everything_of_the_lines(evidence: Evidence) -> None:
    """The frame keeps everything of a line; a missing key becomes null."""
    with evidence.path("pool").open("rb") as lines:
        read = [orjson.loads(line) for line in lines]
    for row, framed in zip(read, evidence.rows("pool").iter_rows(named=True), strict=True):
        messages = [{key: value for key, value in one.items() if value is not None} for one in framed["messages"]]
        assert {**framed, "messages": messages} == row
