"""Does the answer follow: each rule on dialogues of our own, and on the embedded pool."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from rc1_lib.evidence import Evidence
from rc1_lib.reward.rules import add_rules
from rc1_lib.reward.support import HALF_TOLD, ONE_NUMBER, ONLY_SAID, UNMARKED, Grounds

Message = dict[str, Any]
MILL = "The mill of Tarnow was built by Hedda Brask. Its wheel is blue."
FERRY = "Hedda Brask was born in Velmo. She kept geese."
ASKED = "The mill stands in Tarnow. Where was the builder of the mill of Tarnow born?"


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def call(tool: str, argument: str, result: str) -> list[Message]:
    key = {"wiki": "title", "calc": "expression", "ask_user": "question"}[tool]
    function = {"name": tool, "arguments": json.dumps({key: argument})}
    made = {"id": "c", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": "c", "name": tool, "content": result},
    ]


def says(text: str) -> Message:
    return {"role": "assistant", "content": text}


READ = [*call("wiki", "Tarnow", MILL), *call("wiki", "Hedda Brask", FERRY)]


def supported(question: str, *between: Message, answer: str) -> float:
    return Grounds.of([user(question), *between, says(answer)]).supported


@pytest.mark.parametrize(
    ("answer", "worth"),
    [
        ("Answer: Velmo", 1.0),
        ("Answer: Oslo", 0.0),  # nobody said so
        ("Answer: Hedda Brask", 0.0),  # a stop on the way: that page was opened
        ("Answer: Tarnow", 0.0),  # in the question, and nothing is compared
        ("Answer: yes", 0.0),  # of another kind than asked for
        ("Answer:", 0.0),
        ("Answer: " + "Velmo " * 11, 0.0),  # nothing definite
        ("Velmo.", UNMARKED),
        ("I looked it up.", 0.0),
    ],
)
def test_a_name_follows_from_statements_that_the_question_leads_to(answer: str, worth: float) -> None:
    assert supported(ASKED, *READ, answer=answer) == worth


def test_a_name_that_only_a_list_holds_is_supported_by_nothing() -> None:
    assert supported("Pages: Tarnow, Velmo. " + ASKED, answer="Answer: Velmo") == 0.0


def test_a_statement_that_breaks_off_bears_nothing_out() -> None:
    whole = "Hedda Brask built the mill of Tarnow. Hedda Brask was born in Velmo. " + ASKED
    assert supported(whole, answer="Answer: Velmo") == 1.0
    assert supported(whole.replace("Velmo.", "Velmo…"), answer="Answer: Velmo") == 0.0


@pytest.mark.parametrize(
    ("sums", "answer", "worth"),
    [
        ([("3*4", "12")], "Answer: 12", 1.0),
        ([("3*4", "12")], "Answer: 13", 0.0),
        ([("3*4", "12"), ("12+1", "13")], "Answer: 12", 0.0),  # not the last
        ([("3*4", "12")], "Answer: 12 or 13", 0.0),
        ([], "Answer: 12", 0.0),
        ([], "Answer: 4", ONLY_SAID),  # a bare copy from the question's own story
        ([("3*4", "12")], "Answer: Anna", 0.0),
    ],
)
def test_a_quantity_is_the_last_sums(sums: list[tuple[str, str]], answer: str, worth: float) -> None:
    made = [message for expression, result in sums for message in call("calc", expression, result)]
    assert supported("Anna has 3 bags of 4 nuts. How many nuts does Anna have?", *made, answer=answer) == worth


def test_a_number_that_a_page_or_a_reply_gives_is_supported() -> None:
    asked = "In which year was the mill of Tarnow built?"
    assert supported(asked, *call("wiki", "Tarnow", "The mill dates from 1,702."), answer="Answer: 1702") == 1.0
    assert supported(asked, *call("ask_user", "When?", "In 1702."), answer="Answer: 1702") == 1.0
    assert supported(asked, answer="Answer: 1702") == 0.0


MILLS = "Is the mill of Tarnow older than the mill of Velmo?"
BOTH_MILLS = [
    *call("wiki", "Tarnow", "Tarnow has a mill. It dates from 1702. Its wheel has 12 spokes."),
    *call("wiki", "Velmo", "Velmo has a mill. It dates from 1750."),
]


def test_a_verdict_agrees_with_the_last_comparison() -> None:
    compared = [*BOTH_MILLS, *call("calc", "1702<1750", "yes")]
    assert supported(MILLS, *compared, answer="Answer: yes") == 1.0
    assert supported(MILLS, *compared, answer="Answer: no") == 0.0
    assert supported(MILLS, *compared, answer="Answer: yes and no") == 0.0


@pytest.mark.parametrize(
    ("expression", "result", "worth"),
    [
        ("1702<1750", "yes", 1.0),
        ("1<2", "yes", 0.0),  # numbers that nobody said
        ("1702<1760", "yes", 0.0),
        ("12<1702", "yes", 0.0),  # both of one mill
    ],
)
def test_a_comparison_bears_on_a_question_of_two_things_by_a_number_of_each(
    expression: str, result: str, worth: float
) -> None:
    assert supported(MILLS, *BOTH_MILLS, *call("calc", expression, result), answer=f"Answer: {result}") == worth


def test_a_comparison_with_a_page_that_was_pointed_to_and_not_read_is_worth_less() -> None:
    asked = "Pages: Tarnow, Velmo. The mill of Velmo dates from… " + MILLS
    one = [*BOTH_MILLS[:2], *call("calc", "12<1702", "yes")]
    assert supported(asked, *one, answer="Answer: yes") == 0.5
    assert supported(asked, *BOTH_MILLS, *call("calc", "1702<1750", "yes"), answer="Answer: yes") == 1.0


def test_a_comparison_uses_the_numbers_of_the_question_and_not_these_alone() -> None:
    asked = "Anna was born in 1702. The mill dates from 1750. Was Anna more than 40 years old then?"
    whole = [*call("calc", "1750-1702", "48"), *call("calc", "48>40", "yes")]
    assert supported(asked, *whole, answer="Answer: yes") == 1.0
    assert supported(asked, *call("calc", "40<1702", "yes"), answer="Answer: yes") == ONE_NUMBER
    assert supported(asked, *call("calc", "1702<1750", "yes"), answer="Answer: yes") == 0.0
    # What stands on both sides decides nothing.
    assert supported(asked, *call("calc", "40+1702>1702", "yes"), answer="Answer: yes") == 0.0


def test_of_two_things_the_one_is_named_that_the_comparison_speaks_for() -> None:
    asked = "Which mill is older, that of Tarnow or that of Velmo?"
    for expression, result in (("1702<1750", "yes"), ("1750<1702", "no")):
        compared = [*BOTH_MILLS, *call("calc", expression, result)]
        assert supported(asked, *compared, answer="Answer: Tarnow") == 1.0
        assert supported(asked, *compared, answer="Answer: Velmo") == HALF_TOLD
    assert supported(asked, *BOTH_MILLS, *call("calc", "12<1702", "yes"), answer="Answer: Tarnow") == 0.0


NUTS = "Anna has 3 bags with 40 nuts each. She buys 7 nuts. How many nuts does Anna have?"


@pytest.mark.parametrize(
    ("sums", "worth"),
    [
        ([("3*40", "120"), ("120+7", "127")], 1.0),
        ([("3*40+7", "127")], 1.0),
        ([("3*40", "120")], 2 / 3),  # what is left out is paid by its share
        ([("40+0", "40")], 0.0),  # gives back what it was given
        ([("40*1", "40")], 0.0),
        ([("40", "40")], 0.0),
        ([("40+7", "47"), ("47-7", "40")], 0.0),
        ([("3*41", "123"), ("123+7", "130")], 0.0),  # nobody said 41
        ([("40*7", "280")], 0.0),  # nuts times nuts
        ([("3+40", "43"), ("43+7", "50")], 0.0),  # bags and nuts
        ([("40*2", "80")], ONE_NUMBER / 3),  # a single number of three
        ([("(7-7)*3+40+40-40", "40")], 0.0),  # takes all of them and depends on one
        ([("3*40+7*(40-40)", "120")], 2 / 3),
    ],
)
def test_a_sum_is_worth_what_it_takes_of_what_was_told(sums: list[tuple[str, str]], worth: float) -> None:
    made = [message for expression, result in sums for message in call("calc", expression, result)]
    assert supported(NUTS, *made, answer=f"Answer: {sums[-1][1]}") == pytest.approx(worth)


@pytest.mark.parametrize(
    ("answer", "worth"), [("Answer: -4", 1.0), ("Answer: −4", 1.0), ("Answer: $-4", 1.0), ("Answer: 4", 0.0)]
)
def test_a_result_is_given_with_its_sign(answer: str, worth: float) -> None:
    asked = "It was 3 degrees in Velmo. It got colder by 7 degrees. How many degrees is it in Velmo?"
    assert supported(asked, *call("calc", "3-7", "-4"), answer=answer) == worth
    assert supported(asked, *call("calc", "7-3", "4"), answer=answer) == 1.0 - worth
    assert supported(f"It is -4 degrees in Velmo. {asked}", answer=answer) == (ONLY_SAID if worth else 0.0)


def test_a_sum_answers_no_question_for_a_name() -> None:
    told = "Anna has 3 bags. Each holds 40 nuts. "
    made = call("calc", "3*40", "120")
    assert supported(told + "How many nuts does Anna have?", *made, answer="Answer: 120") == 1.0
    assert supported(told + "Who owns the bags?", *made, answer="Answer: 120") == 0.0
    assert supported(told + "Which town does Anna live in?", *made, answer="Answer: 120") == 0.0


def test_a_difference_of_two_things_takes_a_number_of_each() -> None:
    asked = "By how many years do the mill of Tarnow and the mill of Velmo differ?"
    assert supported(asked, *BOTH_MILLS, *call("calc", "1750-1702", "48"), answer="Answer: 48") == 1.0
    assert supported(asked, *BOTH_MILLS, *call("calc", "1702-12", "1690"), answer="Answer: 1690") == 0.0


def test_chinese_things_are_told_apart_by_their_pages() -> None:
    pages = [
        *call("wiki", "米斯卡", "米斯卡的人口是572。到处有12座桥。"),
        *call("wiki", "费隆姆", "费隆姆的人口是317。"),
    ]
    asked = "米斯卡和费隆姆的人数差多少？"
    assert supported(asked, *pages, *call("calc", "572-317", "255"), answer="答案：255") == 1.0
    assert supported(asked, *pages, *call("calc", "572-12", "560"), answer="答案：560") == 0.0


def test_a_verdict_without_a_comparison_counts_half_where_what_was_read_does_not_bear_it_out() -> None:
    asked = "Was Hedda Brask born in Velmo?"
    assert supported(asked, *call("wiki", "Hedda Brask", FERRY), answer="Answer: yes") == 1.0
    assert supported(asked, *call("wiki", "Hedda Brask", FERRY), answer="Answer: no") == HALF_TOLD
    assert supported(asked, answer="Answer: yes") == 0.0
    apart = [*call("wiki", "Hedda Brask", "Hedda Brask was born in Oslo."), *call("wiki", "Velmo", "Velmo has a quay.")]
    assert supported(asked, *apart, answer="Answer: no") == 1.0
    assert supported(asked, *apart, answer="Answer: yes") == HALF_TOLD


def test_of_two_things_both_have_to_be_known() -> None:
    asked = "Which of Tarnow and Velmo has more people?"
    both = [*call("wiki", "Tarnow", "Tarnow has 300 people."), *call("wiki", "Velmo", "Velmo has 200 people.")]
    assert supported(asked, *both, answer="Answer: Tarnow") == 1.0
    assert supported(asked, *both[:2], answer="Answer: Tarnow") == 0.0
    assert supported(asked, *both, answer="Answer: people") == 0.0


def test_a_title_that_nobody_named_bears_nothing_out() -> None:
    none = "There is no page of that title."
    assert supported("How many nuts does Anna have?", *call("wiki", "77", none), answer="Answer: 77") == 0.0
    looked_up = call("wiki", "Tarnow Zorvath", none)
    assert supported("Who owns the mill of Tarnow?", *looked_up, answer="Answer: Zorvath") == 0.0
    # A page that is named on another one says something of its title.
    built = call("wiki", "Tarnow", "Velmo is the guild that built the mill.")
    guild = call("wiki", "Velmo", "Its head was Hedda for years.")
    assert supported("Who headed the builders of Tarnow?", *built, *guild, answer="Answer: Hedda") == 1.0
    assert supported("Who headed the builders of Tarnow?", *guild, answer="Answer: Hedda") == 0.0


def test_what_a_calculator_cannot_do_is_no_result() -> None:
    refused = call("calc", "3<40<3", "The calculator compares 2 values at a time.")
    assert supported(NUTS, *refused, answer="Answer: 2") == 0.0
    whole, failed = call("calc", "3*40+7", "127"), call("calc", "(40", "The calculator takes 200 characters.")
    assert supported(NUTS, *whole, *failed, answer="Answer: 127") == 1.0


@pytest.mark.parametrize("number", ["s\u0131x", "S\u0130X", "1,000.5.2", ".", "1e9", "9" * 5000])
def test_odd_numbers_are_read_without_a_fault(number: str) -> None:
    asked = f"A pack is 20 percent off and holds {number} nuts. How many nuts are there?"
    assert supported(asked, *call("calc", f"77+8*{number}", "85"), answer="Answer: 85") in {0.0, 0.5, 1.0}


def resolved(*messages: Message) -> float:
    return Grounds.of([*messages]).resolved


def test_an_open_question_is_resolved_by_a_reply_that_is_new_and_used() -> None:
    asked = user("Who built a certain mill?")
    reply = call("ask_user", "Which mill do you mean?", "The mill of Tarnow.")
    assert resolved(asked, says("Answer: Anna")) == 0.0
    assert resolved(asked, *reply, *call("wiki", "Tarnow", MILL), says("Answer: Hedda Brask")) == 1.0
    assert resolved(asked, *reply, says("Thank you. Answer: Anna")) == 0.0
    idle = call("ask_user", "How is the weather?", "I have no more to tell.")
    assert resolved(asked, *idle, *call("wiki", "Tarnow", MILL), says("Answer: Hedda Brask")) == 0.0
    assert resolved(user("Who built the mill of Tarnow?"), says("Answer: Anna")) == 1.0


def test_a_question_in_plain_words_resolves_too() -> None:
    asked = [user("Who built a certain mill?"), says("Which one?"), user("That of Tarnow.")]
    assert resolved(*asked, *call("wiki", "Tarnow", MILL), says("Answer: Hedda Brask")) == 1.0


def explained(words: str, *between: Message) -> float:
    return Grounds.of([user(ASKED), *(between or READ), says(f"{words} Answer: Velmo")]).explained


def test_evidence_explains_and_talk_does_not() -> None:
    quoted = explained("Hedda Brask was born in Velmo.")
    assert quoted > 0.8
    assert explained("This answer is complete, correct and clearly reasoned.") < 0.2 * quoted
    assert explained("") == 0.0
    assert explained("Hedda Brask was born in Velmo. " * 12) < quoted
    assert Grounds.of([user(ASKED), *READ, says("Hedda Brask was born in Velmo. Answer: Oslo")]).explained == 0.0


def test_a_supported_answer_is_worth_less_after_calls_that_brought_nothing() -> None:
    asked, end = user(ASKED), says("She was born in Velmo. Answer: Velmo")
    assert Grounds.of([asked, *READ, end]).direct == 1.0
    assert Grounds.of([asked, *READ, *READ[:2], end]).direct < 1.0
    assert Grounds.of([asked, *READ, says("Answer: Oslo")]).direct == 0.0


def test_solved_dialogues_of_the_pool_are_supported_and_wrong_names_are_not(evidence: Evidence) -> None:
    """What the rule is good for; a wrong yes or no from right steps looks supported."""
    rows = add_rules(evidence.rows("pool"), ["supported", "resolved"])
    means = rows.group_by("task", "solved").agg(pl.col("supported").mean()).iter_rows()
    worth = {(task, solved): mean for task, solved, mean in means}
    assert min(mean for (_, solved), mean in worth.items() if solved) > 0.9
    assert worth["hotpotqa", False] < 0.2
    assert worth["gsm8k", False] < 0.2, "their sums take a number that nobody said"
    silent = rows.filter("needs_clarification", pl.col("asked") == 0)
    assert silent["resolved"].mean() < 0.05
