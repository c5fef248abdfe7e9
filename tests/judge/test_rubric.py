"""The local judge reads only the dialogue, and separates good dialogues from better ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.judge import rubric
from rc1_lib.rows.transcript import read

Message = dict[str, Any]
_KEYS = {"wiki": "title", "calc": "expression", "ask_user": "question"}


def user(text: str) -> Message:
    return {"role": "user", "content": text, "tool_calls": None}


def final(text: str) -> Message:
    return {"role": "assistant", "content": text, "tool_calls": None}


def turn(*calls_made: tuple[str, str, str]) -> list[Message]:
    """Return one turn with parallel calls, each given as tool, argument and result."""
    calls = [
        {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps({_KEYS[tool]: argument})},
        }
        for n, (tool, argument, _) in enumerate(calls_made)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "name": tool, "content": result}
        for n, (tool, _, result) in enumerate(calls_made)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


def grade(name: str, messages: Sequence[Message]) -> float:
    return rubric.score(messages)[name]


def test_all_dimensions_of_all_shadow_rows_are_between_0_and_1(evidence: Evidence) -> None:
    for messages in evidence.rows("shadow")["messages"].to_list():
        scored = rubric.score(messages)
        assert set(scored) == set(rubric.DIMENSIONS)
        assert all(0.0 <= value <= 1.0 for value in scored.values())


@pytest.mark.parametrize(
    ("reply", "value"),
    [("Answer: Velmo", 1.0), ("答案：维莫", 1.0), ("Velmo.", 0.0), ("Answer: ", 0.0), ("Answer: ...", 0.0)],
)
def test_a_marked_answer_counts_as_answered_unless_it_is_empty(reply: str, value: float) -> None:
    assert grade("answered", [user("Where is the mill?"), final(reply)]) == value


def test_an_invented_answer_is_less_grounded_than_one_from_a_page() -> None:
    page = turn(("wiki", "Mill", "The mill stands in Velmo."))
    scores = [
        grade("grounded", [user("Where is the mill?"), *page, final(f"Answer: {answer}")])
        for answer in ("Velmo", "Velmo Tarn", "Tarn")
    ]
    assert scores == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("calls_made", "value"),
    [
        ([("calc", "3>2", "yes")], 1.0),
        ([("wiki", "Mill", "It is old.")], 1.0),
        ([("ask_user", "Which?", "Velmo.")], 0.0),
        ([("calc", "3>7", "no")], 0.5),
        ([("calc", "8>9", "no")], 0.0),
    ],
)
def test_a_yes_or_no_is_grounded_by_a_lookup_or_a_calculation_with_known_numbers(
    calls_made: list[tuple[str, str, str]], value: float
) -> None:
    assert grade("grounded", [user("Is 3 more than 2?"), *turn(*calls_made), final("答案：否")]) == value


def test_a_malformed_call_and_a_missing_answer_get_0() -> None:
    broken = {"id": "1", "type": "function", "function": {"name": "wiki", "arguments": "{title"}}
    scores = rubric.score([user("?"), {"role": "assistant", "content": "Hm.", "tool_calls": [broken]}])
    assert (scores["answered"], scores["well_formed"]) == (0.0, 0.0)


def test_a_dialogue_without_an_assistant_raises_an_error() -> None:
    with pytest.raises(ValueError, match="assistant"):
        rubric.score([{"role": "user", "content": "?"}])


def malformed(arguments: Any, content: Any = None) -> list[Message]:
    function = {"name": "calc", "arguments": arguments}
    return [
        {"role": "user", "content": content},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": content},
        {"role": "assistant", "content": content},
    ]


@pytest.mark.parametrize(
    "messages",
    [
        malformed(None),
        malformed("[" * 100_000),
        malformed('{"expression": ' + "9" * 5_000 + "}"),
        malformed('{"expression": {"a": [1]}}', "Answer: " + "7" * 5_000),
        malformed({"expression": "1+1"}, "\ud800 some"),
        malformed("", ["not", "a", "text"]),
        [{"role": "assistant", "content": "", "tool_calls": [None, {}, {"function": None}, {"function": {}}]}],
        [
            {},
            {"role": None, "content": 3},
            {"role": "tool", "content": "orphan"},
            {"role": "assistant", "content": "x"},
        ],
    ],
    ids=range(8),
)
def test_malformed_dialogues_are_scored_without_an_error(messages: list[Message]) -> None:
    assert all(0.0 <= value <= 1.0 for value in rubric.score(messages).values())


def test_results_are_matched_to_calls_by_id_and_without_ids_by_order() -> None:
    messages = turn(("wiki", "A", "a"), ("wiki", "B", "b"))
    crossed = [messages[0], messages[2], messages[1]]
    assert [call.result for call in read(crossed).calls] == ["a", "b"]
    unnamed = [messages[0], *({**message, "tool_call_id": None} for message in crossed[1:])]
    assert [call.result for call in read(unnamed).calls] == ["b", "a"]
    again = [*messages, *turn(("wiki", "C", "c"), ("wiki", "D", "d"))]
    assert [call.result for call in read(again).calls] == ["a", "b", "c", "d"]
    assert [call.result for call in read(messages[:2]).calls] == ["a", ""]
