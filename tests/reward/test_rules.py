"""The rule dimensions, and that the local rubric means the same by them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import ConfigError, RowError
from rc1_lib.evidence import Evidence
from rc1_lib.language.numerals import numbers, numbers_of, operands, operands_of
from rc1_lib.language.open_references import is_open, open_reference
from rc1_lib.reward.rules import RULES, add_rules
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.scoring.rubric import OPEN_ANSWER, score

Message = dict[str, Any]


def user(text: str | None) -> Message:
    return {"role": "user", "content": text}


def calls(tool: str, argument: str, result: str | None, key: str = "expression") -> list[Message]:
    function = {"name": tool, "arguments": json.dumps({key: argument})}
    call = {"id": "c", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "name": tool, "content": result},
    ]


def ruled(*dialogues: list[Message] | None) -> pl.DataFrame:
    frame = pl.DataFrame({"messages": dialogues}, schema={"messages": ROW_COLUMNS["messages"]})
    return add_rules(frame, RULES)


ANSWER: Message = {"role": "assistant", "content": "Answer: 3"}
OPEN_IN_WHAT_IS_SAID = (
    "Which river runs past a certain town?",
    "Who owns the ship in question?",
    "Where was the book I have in mind written?",
    "Somebody from Tarn sails: where to?",
    "Is some town older than Tarn?",
    "那条河从哪里来？",
    "某人出生在哪一年？",
    "Anna bought some apples. How many apples does she hold?",
    "She paid several coins. What does it cost?",
    "他又买了若干个苹果。一共有多少个？",
)
NOTHING_OPEN = (
    "Which river runs past Tarn?",
    "Somebody at the corner told me: Tarn lies at the Velm. Where does it lie?",
    "While some loud cooks are silent, who founded Tarn?",
    "Could someone walk from Tarn to Velmo in a day?",
    "The guild has several members. Who leads it?",
    "How many apples are left, with some left over?",
    "哪本书的页数多一些？",
    "你懂的，还是上回那个。塔恩在哪里？",
    "他们的年纪差几岁？",
)


@pytest.mark.parametrize("said", OPEN_IN_WHAT_IS_SAID)
def test_a_vague_reference_or_quantity_is_open_until_the_user_is_asked(said: str) -> None:
    asked = calls("ask_user", "Which?", "Tarn.", "question")
    assert ruled([user(said), ANSWER], [user(said), *asked, ANSWER])["settled"].to_list() == [0.0, 1.0]


@pytest.mark.parametrize("said", NOTHING_OPEN)
def test_set_phrases_and_idle_quantities_leave_nothing_open(said: str) -> None:
    assert ruled([user(said), ANSWER])["settled"].to_list() == [1.0]


def test_a_page_leaves_a_quantity_open_but_no_reference_and_the_users_reply_leaves_none() -> None:
    how_many = user("How many apples are there?")
    found = ruled(
        [how_many, *calls("wiki", "Shed", "The shed holds some apples.", "title"), ANSWER],
        [user("Who built the shed?"), *calls("wiki", "Shed", "The shed holds some apples.", "title"), ANSWER],
        [user("Who built the shed?"), *calls("wiki", "Shed", "Somebody built the shed.", "title"), ANSWER],
        [how_many, *calls("ask_user", "Which shed?", "The one I have in mind.", "question"), ANSWER],
    )
    assert found["settled"].to_list() == [0.0, 1.0, 1.0, 1.0]


def test_a_question_in_plain_words_counts_as_asked() -> None:
    said = user("Who owns the ship in question?")
    question = {"role": "assistant", "content": "Which ship?"}
    assert ruled([said, question, user("The Wren."), ANSWER])["settled"].to_list() == [1.0]


@pytest.mark.parametrize(
    ("said", "sums", "share"),
    [
        ("I hold 2 and 3.", [("2+3", "5")], 1.0),
        ("I hold 2 and 3.", [("2+3", "5"), ("5*9", "45")], 0.75),
        ("I hold 2.", [("2+3", "5")], 0.5),
        ("I hold 2.", [("7*9", "63")], 0.0),
        ("I hold 1,200.50 coins.", [("1200.5*1", "1200.5")], 0.5),
        ("He works twice as long, and a dozen more.", [("2*12", "24")], 1.0),
        ("我有１２个苹果，半价。", [("12/2", "6")], 1.0),
        ("Nothing to add.", [], 1.0),
        ("Nothing to add.", [("x", "error")], 1.0),
        ("I hold 17 of 5.", [("17%5", "2")], 1.0),
    ],
)
def test_the_share_of_numbers_that_were_said_before_they_were_used(
    said: str, sums: list[tuple[str, str]], share: float
) -> None:
    made = [message for expression, result in sums for message in calls("calc", expression, result)]
    assert ruled([user(said), *made, ANSWER])["sourced"].to_list() == [share]


def test_a_number_counts_only_when_it_was_said_earlier() -> None:
    late = [user("?"), *calls("calc", "4+4", "8"), user("It was 4.")]
    beside = [user("I hold 2."), *calls("calc", "2*2", "4"), *calls("wiki", "Page", "9 more.", "title")]
    assert ruled(late, beside)["sourced"].to_list() == [0.0, 1.0]


def test_rows_of_hostile_or_empty_dialogues_get_a_number_and_absent_ones_get_none() -> None:
    broken = {"id": None, "type": None, "function": {"name": "calc", "arguments": "{expression: " + "9" * 50_000}}
    nameless = {"id": None, "type": None, "function": {"name": None, "arguments": None}}
    found = ruled(
        [user(None), {"role": "assistant", "content": None, "tool_calls": [broken, nameless]}],
        [{"role": "tool", "content": "some 3"}],
        [],
        None,
    )
    assert found.select("settled", "sourced").rows() == [(1.0, 0.0), (1.0, 1.0), (1.0, 1.0), (None, None)]
    followed = found.select("supported", "resolved", "explained", "direct").rows()
    assert followed == [(0.0, 1.0, 0.0, 0.0)] * 3 + [(None,) * 4]


def test_a_dialogue_that_comes_again_is_given_what_was_asked_for_and_a_changed_one_what_it_is_worth() -> None:
    """Each dialogue is read once a process, for the rules that are asked for together."""
    dialogue = [user("How many eggs are in three dozen?"), *calls("calc", "3 * 12", "36")]
    right, wrong = ([*dialogue, {"role": "assistant", "content": f"Answer: {eggs}"}] for eggs in (36, 38))
    frame = pl.DataFrame({"messages": [right, wrong]}, schema={"messages": ROW_COLUMNS["messages"]})
    for names in (("supported",), ("resolved", "supported"), ("supported", "resolved"), ("supported",)):
        found = add_rules(frame, names)
        assert found["supported"].to_list() == [1.0, 0.0]
        assert "resolved" not in names or found["resolved"].to_list() == [1.0, 1.0]


def test_an_unknown_rule_and_rows_without_messages_are_refused_in_words() -> None:
    with pytest.raises(
        ConfigError,
        match="there is no rule polite; the rules are supported, resolved, explained, direct, settled, sourced",
    ):
        add_rules(pl.DataFrame({"messages": [[ANSWER]]}), ["polite"])  # type: ignore[list-item]
    with pytest.raises(RowError, match="expected lists of chat messages"):
        add_rules(pl.DataFrame({"id": ["a"]}), RULES)


def test_texts_are_read_alike_by_row_and_by_column(evidence: Evidence) -> None:
    """Both readings of the word lists and of the numbers, on every message of the pool and on awkward ones."""
    own = evidence.rows("pool").select(pl.col("messages").explode().struct.field("content")).to_series().unique()
    awkward = [
        *OPEN_IN_WHAT_IS_SAID,
        *NOTHING_OPEN,
        "",
        "0",
        "00.500",
        "1,2345",
        ".5.",
        "１２％",
        "SEVERAL Kelvin K",
        "½",
    ]
    frame = pl.DataFrame({"text": [*own.drop_nulls().sort().to_list(), *awkward]})
    read = frame.select(
        "text",
        said=open_reference("text", "text"),
        numbers=numbers_of(pl.col("text")),
        operands=operands_of(pl.col("text")),
    )
    for text, said, found, given in read.iter_rows():
        assert (is_open(text, text), numbers(text), operands(text)) == (said, found, given), text


@pytest.mark.parametrize("name", ["pool", "shadow"])
def test_the_rubric_and_the_rules_agree_on_what_they_share(evidence: Evidence, name: str) -> None:
    rows = add_rules(evidence.rows(name), RULES)
    for messages, settled, sourced in rows.select("messages", "settled", "sourced").iter_rows():
        scores = score(messages).scores
        assert scores["answered"] in (0.0, 1.0 if settled else OPEN_ANSWER)
        if sourced == 0.0:
            assert scores["grounded"] == 0.0
        assert scores["grounded"] <= sourced


def test_open_references_are_found_where_something_was_withheld_and_seldom_elsewhere(evidence: Evidence) -> None:
    """The lists are general, but they have to know how people speak of what they do not name."""
    silent = evidence.rows("pool").filter(pl.col("asked") == 0)
    rows = add_rules(silent, ["settled"])
    needs = pl.col("needs_clarification")
    found, false = rows.select(
        (pl.col("settled").filter(needs) == 0).mean().alias("found"),
        (pl.col("settled").filter(~needs) == 0).mean().alias("false"),
    ).row(0)
    assert found > 0.95
    assert false < 0.05
