"""The two rule-based dimensions: was the answer obtained, and was the user's reply used?"""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import ConfigError, RowError
from rc1_lib.reward.rules import RULES, add_rules
from rc1_lib.rows.frame import ROW_COLUMNS

Message = dict[str, Any]
_KEYS = {"wiki": "title", "calc": "expression", "ask_user": "question"}


def user(text: str | None) -> Message:
    return {"role": "user", "content": text}


def final(text: str) -> Message:
    return {"role": "assistant", "content": text}


def call(tool: str, argument: str, result: str | None) -> list[Message]:
    function = {"name": tool, "arguments": json.dumps({_KEYS[tool]: argument})}
    return [
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "name": tool, "content": result},
    ]


def ruled(*dialogues: list[Message] | None) -> pl.DataFrame:
    frame = pl.DataFrame({"messages": dialogues}, schema={"messages": ROW_COLUMNS["messages"]})
    return add_rules(frame, RULES)


def obtained(*messages: Message) -> float:
    return float(ruled(list(messages))["obtained"].item())


MILL = call("wiki", "Mill", "The mill was built by Quill in 412.")
QUILL = call("wiki", "Quill", "Quill was born in Velmo.")


@pytest.mark.parametrize(
    ("answer", "score"),
    [("Quill", 1.0), ("the mill", 1.0), ("Velmo", 0.0), ("412", 1.0), ("413", 0.0), ("", 0.0), ("Quill Velmo", 0.0)],
)
def test_an_answer_is_obtained_if_a_page_contains_it(answer: str, score: float) -> None:
    assert obtained(user("Who built the mill?"), *MILL, final(f"Answer: {answer}")) == score


def test_a_page_looked_up_by_the_answer_itself_does_not_count() -> None:
    prompt = user("Where was the builder of the mill born?")
    assert obtained(prompt, *QUILL, final("Answer: Quill")) == 0.0
    assert obtained(prompt, *MILL, *QUILL, final("Answer: Quill")) == 1.0


def test_without_calls_the_users_message_may_contain_the_answer() -> None:
    prompt = user("Quill built the mill. Who built the mill?")
    assert obtained(prompt, final("Answer: Quill")) == 1.0
    assert obtained(prompt, final("Answer: Velmo")) == 0.0
    assert obtained(user("Who built it, Quill or Tarn?"), *QUILL, final("Answer: Tarn")) == 0.0


def test_a_calculation_with_an_unknown_number_does_not_count() -> None:
    prompt = user("I hold 2 apples and get 3. How many?")
    assert obtained(prompt, *call("calc", "2+3", "5"), final("Answer: 5")) == 1.0
    assert obtained(prompt, *call("calc", "2+4", "6"), final("Answer: 6")) == 0.0
    assert obtained(prompt, *call("calc", "2+3", "5"), *call("calc", "5*2", "10"), final("Answer: 10")) == 1.0


@pytest.mark.parametrize(
    ("answer", "comparisons", "score"),
    [
        ("yes", [("3>2", "yes")], 1.0),
        ("no", [("3>2", "yes")], 0.0),
        ("否", [("3>2", "no")], 1.0),
        ("是的。", [("3>2", "yes")], 1.0),
        ("不是", [("3>2", "yes")], 0.0),
        ("Yes, it is.", [("3>2", "no")], 0.0),
        ("yes", [], 0.5),
        ("yes", [("3>2", "no"), ("2<3", "yes")], 1.0),
    ],
)
def test_a_yes_or_no_is_obtained_if_the_last_comparison_agrees(
    answer: str, comparisons: list[tuple[str, str]], score: float
) -> None:
    calls = [message for comparison in comparisons for message in call("calc", *comparison)]
    assert obtained(user("Is 3 more than 2?"), *calls, final(f"Answer: {answer}")) == score


def test_an_unmarked_answer_and_a_long_answer_are_not_obtained() -> None:
    assert obtained(user("Who built the mill?"), *MILL, final("Quill.")) == 0.0
    assert obtained(user("Who built the mill?"), *MILL, final("Answer: " + "mill " * 11)) == 0.0


@pytest.mark.parametrize(
    ("after", "score"),
    [
        ([*call("wiki", "Tarn", "A town."), final("Answer: old")], 1.0),
        ([final("Answer: Tarn")], 1.0),
        ([*call("wiki", "Mill", "A mill."), final("Answer: old")], 0.0),
    ],
)
def test_a_reply_is_used_if_its_information_is_in_a_later_call_or_the_answer(
    after: list[Message], score: float
) -> None:
    asked = call("ask_user", "Which mill?", "The mill of Tarn.")
    assert ruled([user("How old is the mill?"), *asked, *after])["reply_used"].item() == score


def test_a_dialogue_without_a_question_gets_one_half() -> None:
    assert ruled([user("?"), final("Answer: 3")])["reply_used"].item() == 0.5


def test_two_questions_count_half_each() -> None:
    idle, used = call("ask_user", "How are you?", "Fine."), call("ask_user", "Which mill?", "That of Tarn.")
    assert ruled([user("?"), *idle, *used, final("Answer: Tarn")])["reply_used"].item() == 0.5


def test_malformed_and_empty_dialogues_get_a_number_and_null_gets_null() -> None:
    broken = {"id": None, "type": None, "function": {"name": "calc", "arguments": "{expression: " + "9" * 50_000}}
    nameless = {"id": None, "type": None, "function": {"name": None, "arguments": None}}
    found = ruled(
        [user(None), {"role": "assistant", "content": None, "tool_calls": [broken, nameless]}],
        [{"role": "tool", "content": "some 3"}],
        [],
        None,
    )
    assert found.select("obtained", "reply_used").rows() == [(0.0, 0.5)] * 3 + [(None, None)]


def test_an_unknown_rule_and_rows_without_messages_raise_an_error() -> None:
    with pytest.raises(ConfigError, match="polite"):
        add_rules(pl.DataFrame({"messages": [[final("Answer: 3")]]}), ["polite"])  # type: ignore[list-item]
    with pytest.raises(RowError, match="chat messages"):
        add_rules(pl.DataFrame({"id": ["a"]}), RULES)
