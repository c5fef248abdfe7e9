"""Counts of turns, tool calls and questions in chat dialogues."""

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


def assistant(text: str = "Hm.", *tools: str) -> Message:
    calls = [{"id": "", "type": "function", "function": {"name": tool, "arguments": "{}"}} for tool in tools]
    return {"role": "assistant", "content": text, "tool_calls": calls or None}


def counted(*dialogues: list[Message] | None) -> list[tuple[Any, ...]]:
    frame = pl.DataFrame({"messages": dialogues}, schema={"messages": ROW_COLUMNS["messages"]})
    return add_counts(frame).select(COUNTS).rows()


@pytest.mark.parametrize("name", ["pool", "shadow", "takes"])
def test_counts_of_columns_equal_those_of_single_dialogues(evidence: Evidence, name: str) -> None:
    rows = evidence.rows(name)
    singly = [astuple(counts_of(messages)) for messages in rows["messages"].to_list()]
    assert add_counts(rows).select(COUNTS).rows() == singly
    assert with_texts(rows).select(COUNTS).rows() == singly


ROLES = st.sampled_from(["system", "user", "assistant", "tool", "developer"])
TOOLS = st.lists(st.sampled_from(["wiki", "calc", "ask_user", "book_flight", ""]), max_size=3)


@given(st.lists(st.lists(st.tuples(ROLES, TOOLS), max_size=8), min_size=1, max_size=6))
def test_counts_of_columns_equal_those_of_single_random_dialogues(
    dialogues: list[list[tuple[str, list[str]]]],
) -> None:
    chats: list[list[Message]] = [
        [{**assistant("Hm.", *tools), "role": role} for role, tools in one] for one in dialogues
    ]
    assert counted(*chats) == [astuple(counts_of(messages)) for messages in chats]
    assert counted(*chats) == [astuple(count(one)) for one in dialogues]


def test_every_tool_call_except_ask_user_is_a_hop() -> None:
    assert counted([USER, assistant("", "wiki", "calc", "book_flight"), assistant("", "ask_user")]) == [(2, 3, 1)]


def test_a_message_without_a_call_is_a_question_if_the_user_replies_next() -> None:
    assert counted([USER, assistant(), USER, assistant("", "wiki"), USER, assistant()]) == [(3, 1, 1)]


def test_an_empty_dialogue_counts_0_and_a_null_dialogue_null() -> None:
    assert counted([], None, [USER, assistant()]) == [(0, 0, 0), (None, None, None), (1, 0, 0)]


@pytest.mark.parametrize("frame", [pl.DataFrame({"id": ["a"]}), pl.DataFrame({"messages": ["hello"]})])
def test_rows_without_chat_messages_raise_an_error(frame: pl.DataFrame) -> None:
    with pytest.raises(RowError, match=r"'messages' .*role"):
        add_counts(frame)
