"""Counts of any chat dialogue."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.errors import RowError
from rc1_lib.evidence import Evidence
from rc1_lib.rows.chat import add_counts, count, counts_of
from rc1_lib.rows.frame import ROW_COLUMNS, with_texts

Message = dict[str, Any]
COUNTS = ("turns", "tool_hops", "clarifications")
USER: Message = {"role": "user", "content": "?"}


def says(text: str = "Hm.", *tools: str) -> Message:
    calls = [{"id": "", "type": "function", "function": {"name": tool, "arguments": "{}"}} for tool in tools]
    return {"role": "assistant", "content": text, "tool_calls": calls or None}


def counted(*dialogues: list[Message] | None) -> list[tuple[Any, ...]]:
    frame = pl.DataFrame({"messages": dialogues}, schema={"messages": ROW_COLUMNS["messages"]})
    return add_counts(frame).select(COUNTS).rows()


@pytest.mark.parametrize("name", ["pool", "shadow", "takes"])
def test_columns_and_one_dialogue_are_counted_alike(evidence: Evidence, name: str) -> None:
    rows = evidence.rows(name)
    singly = [astuple(counts_of(messages)) for messages in rows["messages"].to_list()]
    assert add_counts(rows).select(COUNTS).rows() == singly
    assert with_texts(rows).select(COUNTS).rows() == singly


SPOKEN = st.sampled_from(["system", "user", "assistant", "tool", "developer"])
TOOLS = st.lists(st.sampled_from(["wiki", "calc", "ask_user", "book_flight", ""]), max_size=3)


@given(st.lists(st.lists(st.tuples(SPOKEN, TOOLS), max_size=8), min_size=1, max_size=6))
def test_columns_and_one_dialogue_are_counted_alike_whatever_is_said(
    dialogues: list[list[tuple[str, list[str]]]],
) -> None:
    told: list[list[Message]] = [[{**says("Hm.", *tools), "role": role} for role, tools in said] for said in dialogues]
    assert counted(*told) == [astuple(counts_of(messages)) for messages in told]
    assert counted(*told) == [astuple(count(said)) for said in dialogues]


def test_every_tool_but_the_user_is_a_hop() -> None:
    assert counted([USER, says("", "wiki", "calc", "book_flight"), says("", "ask_user")]) == [(2, 3, 1)]


def test_a_plain_message_is_a_question_when_the_user_replies_to_it_at_once() -> None:
    assert counted([USER, says(), USER, says("", "wiki"), USER, says()]) == [(3, 1, 1)]


def test_the_user_of_the_next_dialogue_replies_to_nobody() -> None:
    assert counted([USER, says()], [USER, says()]) == [(1, 0, 0), (1, 0, 0)]


def test_dialogues_without_messages_count_nothing_and_an_absent_one_is_not_counted() -> None:
    assert counted([], None, [USER, says()]) == [(0, 0, 0), (None, None, None), (1, 0, 0)]


def test_messages_that_know_no_tools_are_counted_too() -> None:
    frame = pl.DataFrame({"messages": [[USER, {"role": "assistant", "content": None}, USER]]})
    assert add_counts(frame).select(COUNTS).rows() == [(1, 0, 1)]


def test_the_counts_are_whole_numbers() -> None:
    frame = pl.DataFrame({"messages": [[USER, says()]]})
    assert add_counts(frame).select(COUNTS).dtypes == [pl.Int64] * 3


@pytest.mark.parametrize("frame", [pl.DataFrame({"id": ["a"]}), pl.DataFrame({"messages": ["hello"]})])
def test_rows_without_chat_messages_are_refused(frame: pl.DataFrame) -> None:
    with pytest.raises(RowError, match=r"'messages' .*role"):
        add_counts(frame)
