"""GSM8K records become stories with calculations; the records are made up and the expectations computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.records import Passage, Slot, Step
from rc1_lib.task_specs.gsm8k import parse
from rc1_lib.task_specs.spec import UnusableRecord

PLAIN: dict[str, Any] = {
    "question": "Oskar packed 36 pears in the morning.  Then he packed half as many after lunch. How many did he pack?",
    "answer": "After lunch 36/2 = <<36/2=18>>18.\nIn all <<36+18=54>>54 pears.\n#### 54",
}


def _with(question: str, answer: str = "<<6*4=24>>24\n#### 24") -> dict[str, Any]:
    return {"question": question, "answer": answer}


def test_record_becomes_a_lookup_and_calculations() -> None:
    question = parse(PLAIN, 7, "train")
    story = "Oskar packed 36 pears in the morning. Then he packed half as many after lunch."
    assert question.id == "gsm8k/train/7"
    assert question.ask == "How many did he pack?"
    assert " ".join(question.support) == story and len(question.support) == 2
    assert question.passages == (Passage("Story train 7", story),)
    assert question.steps == (
        Step("wiki", "Story train 7", story),
        Step("calc", "36/2", "18"),
        Step("calc", "36+18", "54"),
    )
    assert question.answer == "54" and question.aliases == ()
    assert question.slot == Slot("story", "36", "some", "how many pears")


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ("Ana ran 6 times as fast as Bo.", Slot("story", "6", "several", "how many times")),
        ("She keeps 6 of her old coats.", Slot("story", "6", "some", "how many of her old coats")),
        (
            "A pen costs $6 here.",
            Slot("story", "$6", "some money", "the exact amount where it says 'A pen costs some money'"),
        ),
        ("He owns 6 cows. His aunt owns 6 goats.", None),
        ("He owns 6 cows and 6% of a farm.", None),
        ("He bought the 6 cows.", None),
        ("It weighs 16 stones and 6.5 pounds.", None),
    ],
)
def test_only_a_cleanly_replaceable_number_becomes_missing_information(story: str, expected: Slot | None) -> None:
    assert parse(_with(f"{story} How many in all?"), 0, "t").slot == expected


def test_number_repeated_in_the_question_is_not_withheld() -> None:
    assert parse(_with("He owns 6 cows. What do 6 cows eat?"), 0, "t").slot is None


@pytest.mark.parametrize(
    ("asked", "story", "ask"),
    [
        (
            "If Una stacks 6 boxes of 4 cups, how many cups does she stack?",
            "Una stacks 6 boxes of 4 cups.",
            "How many cups does she stack?",
        ),
        (
            "How many cups does Una stack if there are 6 boxes of 4 cups?",
            "There are 6 boxes of 4 cups.",
            "How many cups does Una stack?",
        ),
        ("Mr. Ode has 6 boxes of 4 cups. Calculate the cups.", "Mr. Ode has 6 boxes of 4 cups.", "Calculate the cups."),
    ],
)
def test_story_and_question_are_split(asked: str, story: str, ask: str) -> None:
    question = parse(_with(asked), 0, "t")
    assert (question.passages[0].text, question.ask) == (story, ask)


@pytest.mark.parametrize(
    ("mark", "argument", "result"),
    [
        ("$6*4=$24", "6*4", "24"),
        ("1,000*2=2,000", "1000*2", "2000"),
        ("50*20%=10", "50*(20/100)", "10"),
        ("6kg*2=12", "6*2", "12"),
        ("2/3=0.6666667", "2/3", "0.666667"),
    ],
)
def test_calculator_marks_are_cleaned_of_currency_units_and_percent(mark: str, argument: str, result: str) -> None:
    question = parse(_with("He owns 6 cows. How much?", f"<<{mark}>>x\n#### 1,024"), 0, "t")
    assert question.steps[-1] == Step("calc", argument, result)
    assert question.answer == "1024" and question.aliases == ("1,024",)


@pytest.mark.parametrize(
    ("final", "answer"), [("24.", "24"), ("1,024", "1024"), ("$ 24", "24"), ("24 .", "24"), (".5", ".5")]
)
def test_final_answer_is_a_plain_number(final: str, answer: str) -> None:
    found = parse(_with("He owns 6 cows. How many?", f"<<6*4=24>>24\n#### {final}"), 0, "t")
    assert (found.answer, found.aliases) == (answer, () if final == answer else (final,))


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("He owns 6 cows. How many?", "<<6*4=24>>24", "no #### line"),
        ("He owns 6 cows. How many?", "<<6*4=24>>24\n#### many", "answer is not a number"),
        ("He owns 6 cows. How many?", "<<6/4=1.5>>1,5\n#### 1,5", "answer is not a number"),
        ("He owns 6 cows. How many?", "Six.\n#### 6", "no calculator marks"),
        ("He owns 6 cows. How many?", "<<6*4=25>>25\n#### 25", "calculator mark does not check out"),
        ("He owns 6 cows. How many?", "<<6**4=25>>25\n#### 25", "calculator mark is not arithmetic"),
        ("What is four times six?", "<<6*4=24>>24\n#### 24", "no story"),
    ],
)
def test_unusable_record_has_a_reason(question: str, answer: str, reason: str) -> None:
    with pytest.raises(UnusableRecord) as caught:
        parse(_with(question, answer), 0, "t")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ({"question": "Why?"}, r"'answer' .*question"),
        ({"question": 5, "answer": "#### 5"}, r"'question' .*5 \(int\); "),
    ],
)
def test_malformed_record_is_rejected_with_its_key(record: dict[str, Any], error: str) -> None:
    with pytest.raises(SourceError, match=error):
        parse(record, 0, "t")
