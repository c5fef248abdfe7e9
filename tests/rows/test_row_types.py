"""The type `Row`, the rows that RC1 writes and the columns of frames agree."""

from __future__ import annotations

import orjson
import polars as pl

from rc1_lib.evidence import Evidence
from rc1_lib.records import Message, Row
from rc1_lib.rows.frame import ROW_COLUMNS, columns_of


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
        assert list(row) == list(Row.__annotations__)
