"""Records of any data set: what is asked, what is looked up, what can be withheld, and what is refused."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.records import Question
from rc1_lib.task_specs import is_right, task_spec
from rc1_lib.task_specs.spec import UnusableRecord

TOWN = "Mardale lies on the river Fale. Its mayor is Ida Voss."


def parsed(task: str, **record: Any) -> Question:
    return task_spec(task).parse(record, 3, "train")


def test_a_name_that_the_question_asks_about_leads_to_the_context() -> None:
    found = parsed("any_text", question="Who is mayor of Mardale?", answer=["Ida Voss", "Voss"], context=[[TOWN]])
    assert (found.answer, found.aliases, found.support) == ("Ida Voss", ("Voss",), ("Its mayor is Ida Voss.",))
    assert found.passages[0].title == "Mardale"
    assert found.slot is not None and (found.slot.value, found.slot.hides) == ("Mardale", ("Mardale",))


def test_without_a_context_what_stands_before_the_question_is_looked_up() -> None:
    found = parsed("any_number", question="A box has 3 jars. How many jars are in 2 boxes?", answer=6)
    assert (found.ask, found.support, found.answer) == ("How many jars are in 2 boxes?", ("A box has 3 jars.",), "6")
    assert found.passages[0].title == "Text train 3" and found.slot is None and found.kept
    alone = parsed("any_number", question="7, 9, 11, ?", answer="1,300")
    assert (alone.support, alone.answer) == (("7, 9, 11, ?",), "1300") and alone.ask not in alone.support


CHOICES: list[tuple[Any, Any]] = [
    ("B", {"text": ["iron", "zinc"], "label": ["A", "B"]}),
    ("zinc", ["iron", "zinc"]),
    (1, ["iron", "zinc"]),
    ("B", ["iron", "zinc"]),
    ("2", {"text": ["iron", "zinc"], "label": ["1", "2"]}),
    (2, {"text": ["iron", "zinc"], "label": ["1", "2"]}),
    ("iron", {"text": ["zinc", "lead"], "label": ["iron", "tin"]}),
    (["B"], ["iron", "zinc"]),
]


@pytest.mark.parametrize(("answer", "choices"), CHOICES)
def test_a_choice_is_named_by_text_number_or_label(answer: object, choices: object) -> None:
    found = parsed("any_text", question="Which metal melts first?", answer=answer, choices=choices)
    assert found.answer == "zinc" and "zinc" in found.passages[0].text
    assert found.ask == "Which metal melts first?"
    assert is_right("any_text", "Zinc", found.answer) and not is_right("any_text", "iron", found.answer)


def test_a_verdict_is_read_in_any_spelling() -> None:
    given = {"yes": (True, "Yes", "true"), "no": (False, "No.", "False")}
    for verdict, spellings in given.items():
        for answer in spellings:
            assert parsed("any_verdict", question="Is it tall?", answer=answer, context=TOWN).answer == verdict


def test_of_numbers_and_verdicts_only_answers_that_agree_are_taken() -> None:
    """Their rules know no aliases, so the second answer would be refused."""
    for task, agree, differ in (
        ("any_number", ["12.50", 12.5], [12, 13]),
        ("any_verdict", ["Yes", True], ["yes", "no"]),
    ):
        assert parsed(task, question="Is it? How many?", answer=agree, context=TOWN)
        with pytest.raises(UnusableRecord, match="several answers that differ"):
            parsed(task, question="Is it? How many?", answer=differ, context=TOWN)


def test_a_number_may_have_as_many_digits_as_a_float_holds() -> None:
    longest = parsed("any_number", question="How many?", answer="9" * 300, context=TOWN)
    assert task_spec("any_number").guess(longest, random.Random(0)).isdigit()
    for digits in (301, 5000):
        with pytest.raises(SourceError, match="expected a number"):
            parsed("any_number", question="How many?", answer="9" * digits, context=TOWN)
        with pytest.raises(UnusableRecord, match="not a number"):
            parsed("gsm8k", question="A box has 3 jars. How many?", answer=f"<<1+2=3>>\n#### {'9' * digits}")


@pytest.mark.parametrize(("task", "answer"), [("any_verdict", False), ("any_number", 2)])
def test_the_evidence_for_a_verdict_or_a_number_does_not_tell_it(task: str, answer: object) -> None:
    context = "Penguins cannot fly. In 2012 some swam north. Their wings move them."
    found = parsed(task, question="How do penguins move?", answer=answer, context=context)
    assert found.support == ("Penguins cannot fly.", "In 2012 some swam north.", "Their wings move them.")


def test_a_text_is_evidence_as_a_whole_word() -> None:
    found = parsed("any_text", question="Who swam?", answer="Ida", context="Idaho is a state. Ida swam.")
    assert found.support == ("Ida swam.",)


def test_choices_that_the_rule_cannot_tell_apart_are_left_out() -> None:
    for answer in ("The Who", "Who"):
        with pytest.raises(UnusableRecord, match="another choice"):
            parsed("any_text", question="Which band?", answer=answer, choices=["The Who", "Who", "Cream"])
    assert parsed("any_text", question="Which band?", answer="Cream", choices=["The Who", "Who", "Cream"])


def test_a_chinese_question_is_left_out_with_a_reason() -> None:
    with pytest.raises(UnusableRecord, match="Chinese"):
        parsed("any_text", question="谁是马德尔的市长？", answer="艾达")


REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("question", "any_text", {"question": " ", "answer": "x"}),
    ("answer", "any_text", {"question": "Who?", "answer": None}),
    ("answer", "any_text", {"question": "Who?", "answer": "  "}),
    ("answer", "any_text", {"question": "Who?", "answer": []}),
    ("answer", "any_text", {"question": "Who?", "answer": "A"}),
    ("answer", "any_text", {"question": "Who?", "answer": "word " * 21}),
    ("answer", "any_text", {"question": "Who?", "answer": math.nan}),
    ("answer", "any_text", {"question": "Who?", "answer": ["Ida", True]}),
    ("answer", "any_number", {"question": "How many?", "answer": "#### 7"}),
    ("answer", "any_number", {"question": "How many?", "answer": True}),
    ("answer", "any_verdict", {"question": "Is it?", "answer": "maybe"}),
    ("answer", "any_verdict", {"question": "Is it?", "answer": 7}),
    ("answer", "any_text", {"question": "Who?", "answer": "tin", "choices": ["iron", "zinc"]}),
    ("answer", "any_text", {"question": "Who?", "answer": 2, "choices": ["iron", "zinc"]}),
    ("answer", "any_number", {"question": "How many?", "answer": 1, "choices": [3, 2, 1]}),
    ("answer", "any_text", {"question": "Who?", "answer": "A", "choices": ["B", "A"]}),
    ("answer", "any_text", {"question": "Who?", "answer": ["iron", "tin"], "choices": ["iron", "zinc"]}),
    ("answer", "any_text", {"question": "Who?", "answer": {"text": "Ida"}}),
    ("answer", "any_text", {"question": "Who?", "answer": [["Ida"], ["Voss"]]}),
    ("choices", "any_text", {"question": "Who?", "answer": 1, "choices": ["x", "x", "y"]}),
    ("choices", "any_text", {"question": "Who?", "answer": "A", "choices": {"text": ["x", "y"], "label": ["A", "A"]}}),
    ("choices", "any_text", {"question": "Who?", "answer": "A", "choices": {"text": ["x", "y"], "label": ["A"]}}),
    ("context", "any_text", {"question": "Who?", "answer": "x", "context": []}),
    ("context", "any_text", {"question": "Who?", "answer": "x", "context": [7]}),
]


@pytest.mark.parametrize(("key", "task", "record"), REFUSED)
def test_a_record_of_another_form_is_refused_by_its_key(key: str, task: str, record: dict[str, Any]) -> None:
    with pytest.raises(SourceError, match=f"'{key}' holds"):
        parsed(task, **record)
