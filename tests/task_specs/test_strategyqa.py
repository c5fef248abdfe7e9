"""StrategyQA records become pages to look up; the records here are made up."""

from __future__ import annotations

from typing import Any

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.records import Passage, Slot
from rc1_lib.task_specs.spec import UnusableRecord
from rc1_lib.task_specs.strategyqa import parse


def _record(**changes: Any) -> dict[str, Any]:
    record = {
        "qid": "q1",
        "term": "Brindle Tower",
        "description": "tower in Quorn",
        "question": "Is Brindle Tower taller than the Voss Spire?",
        "answer": True,
        "facts": ["The Voss Spire is 40 metres tall", "Brindle Tower is 90 metres tall.", "Towers attract lightning."],
        "decomposition": ["How tall is Brindle Tower?", "How tall is the Voss Spire?", "Is #1 greater than #2?"],
    }
    return {**record, **changes}


def test_each_lookup_gets_its_matching_fact_and_the_term_gets_the_rest() -> None:
    question = parse(_record(), 5, "train")
    assert question.id == "strategyqa/train/5"
    assert question.passages == (
        Passage("Brindle Tower", "Brindle Tower is 90 metres tall. Towers attract lightning."),
        Passage("Voss Spire", "The Voss Spire is 40 metres tall."),
    )
    assert [(step.tool, step.argument) for step in question.steps] == [
        ("wiki", "Brindle Tower"),
        ("wiki", "Voss Spire"),
    ]
    assert question.answer == "yes"
    wanted = "which one is meant by 'a certain one'"
    assert question.slot == Slot("ask", "Brindle Tower", "a certain one", wanted, hides=("Brindle Tower",))


def test_titles_are_distinct() -> None:
    steps = ["When was Ida Voss born?", "Where was Ida Voss buried?"]
    facts = ["Ida Voss was born in 1802.", "Ida Voss was buried in Quorn."]
    question = parse(_record(decomposition=steps, facts=facts), 0, "t")
    assert [page.title for page in question.passages] == ["Ida Voss", "Ida Voss (buried)"]


def test_facts_in_one_text_become_separate_pages() -> None:
    record = _record(facts="Old Brindle Tower is tall. In winter the Voss Spire is closed.")
    del record["decomposition"]
    question = parse(record, 0, "t")
    assert question.support == ("Old Brindle Tower is tall.", "In winter the Voss Spire is closed.")
    assert [page.text for page in question.passages] == list(question.support)
    assert len({page.title.casefold() for page in question.passages}) == 2


def test_term_that_a_listed_title_contains_is_not_withheld() -> None:
    steps = ["How tall is Brindle Tower?", "How many lights are on Brindle Tower?"]
    facts = ["Brindle Tower is 90 metres tall.", "Brindle Tower has many lights."]
    question = parse(_record(decomposition=steps, facts=facts), 0, "t")
    assert question.passages[1].title == "Brindle Tower (light)"
    assert question.slot is None


@pytest.mark.parametrize(
    ("asked", "term", "value"),
    [
        ("Would a badger like the sea?", "Badger", None),
        ("Is it safe to keep a badger?", "Badger", "a badger"),
        ("Is a badger coat warm?", "Badger", None),
        ("Do badgers swim?", "Badger", None),
        ("The Badger Inn: is it old?", "Badger Inn", "The Badger Inn"),
        ("Is a badger a badger?", "Badger", None),
    ],
)
def test_only_a_term_that_is_a_full_noun_phrase_is_withheld(asked: str, term: str, value: str | None) -> None:
    record = _record(question=asked, term=term, facts=["One fact."], decomposition=["What is it?"])
    slot = parse(record, 0, "t").slot
    assert (slot.value if slot else None) == value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"facts": []}, "no facts"),
        ({"facts": " "}, "no facts"),
        ({"term": ""}, "empty question or term"),
        (
            {"question": "布林德尔塔高吗？"},
            "the question is mostly Chinese; the templates for any data set are English",
        ),
    ],
)
def test_record_without_facts_or_term_has_a_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableRecord) as caught:
        parse(_record(**changes), 0, "t")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"answer": "yes"}, r"'answer' .*'yes' \(str\); "),
        ({"facts": [1]}, r"'facts' .*texts"),
        ({"decomposition": "How?"}, r"'decomposition' .*'How\?' \(str\); .*list"),
    ],
)
def test_malformed_record_is_rejected_with_its_key(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(SourceError, match=error):
        parse(_record(**changes), 0, "t")
