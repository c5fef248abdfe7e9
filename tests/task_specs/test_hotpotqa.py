"""HotpotQA records in both published formats; the records here are made up."""

from __future__ import annotations

from typing import Any

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.records import Passage, Slot, Step
from rc1_lib.task_specs.hotpotqa import parse
from rc1_lib.task_specs.spec import UnusableRecord

PAGES = {
    "Brindle Tower": ["Brindle Tower stands in Quorn.", " It has nine floors."],
    "Quorn Bay": ["Quorn Bay is a harbour."],
    "Quorn": ["Quorn is a port.", " Its mayor is Ida Voss."],
}


def _original(**changes: Any) -> dict[str, Any]:
    record = {
        "_id": "a1",
        "question": "Who is mayor of the place where the Brindle Tower stands?",
        "answer": "Ida Voss",
        "supporting_facts": [["Quorn", 1], ["Brindle Tower", 0]],
        "context": [[title, list(sentences)] for title, sentences in PAGES.items()],
    }
    return {**record, **changes}


def _columns() -> dict[str, Any]:
    record = _original()
    del record["_id"]
    record["supporting_facts"] = {"title": ["Quorn", "Brindle Tower"], "sent_id": [1, 0]}
    record["context"] = {"title": list(PAGES), "sentences": list(PAGES.values())}
    return record


def test_steps_start_at_the_title_in_the_question() -> None:
    question = parse(_original(), 3, "dev")
    assert question.id == "hotpotqa/dev/3"
    assert question.support == ("Brindle Tower stands in Quorn.", "Its mayor is Ida Voss.")
    assert [page.title for page in question.passages] == ["Brindle Tower", "Quorn", "Quorn Bay"]
    assert question.passages[0] == Passage("Brindle Tower", "Brindle Tower stands in Quorn. It has nine floors.")
    assert question.steps == (
        Step("wiki", "Brindle Tower", "Brindle Tower stands in Quorn. It has nine floors."),
        Step("wiki", "Quorn", "Quorn is a port. Its mayor is Ida Voss."),
    )
    assert question.answer == "Ida Voss"


def test_both_published_formats_give_the_same_question() -> None:
    assert parse(_columns(), 3, "dev") == parse(_original(), 3, "dev")


def test_empty_pages_are_left_out() -> None:
    context = [[title, list(sentences)] for title, sentences in PAGES.items()]
    assert parse(_original(context=[*context, ["Ostwick", []], [" ", ["No title."]]]), 0, "t") == parse(
        _original(), 0, "t"
    )


def test_title_in_the_question_is_withheld_with_its_article() -> None:
    slot = parse(_original(), 0, "dev").slot
    hides = ("Brindle Tower", "Quorn", "Quorn Bay")  # Quorn's page has the answer, and the bay's leads there
    wanted = "which one is meant by 'a certain one'"
    assert slot == Slot("ask", "the Brindle Tower", "a certain one", wanted, hides=hides)


def test_title_named_twice_is_not_withheld() -> None:
    asked = "Is Brindle Tower, the Brindle Tower, in a port?"
    assert parse(_original(question=asked), 0, "dev").slot is None


def test_title_that_is_the_answer_is_not_withheld() -> None:
    asked = "Which has more floors, Brindle Tower or the other one?"
    assert parse(_original(question=asked, answer="Brindle Tower"), 0, "dev").slot is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"supporting_facts": [["Nowhere", 0]]}, "supporting title not in context"),
        ({"supporting_facts": [["Quorn", 2]]}, "supporting sentence not in context"),
        ({"supporting_facts": []}, "no supporting facts"),
    ],
)
def test_record_without_its_support_has_a_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableRecord) as caught:
        parse(_original(**changes), 0, "dev")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"context": "Quorn"}, r"'context' .*'Quorn' \(str\); .*list"),
        ({"context": [["Quorn", [4]]]}, r"'context' .*4 \(int\); .*texts"),
        ({"supporting_facts": [["Quorn", "1"]]}, "number of a sentence"),
        ({"supporting_facts": {"title": ["Quorn"], "sent_id": []}}, "1 titles but 0 sent_id"),
    ],
)
def test_malformed_record_is_rejected_with_its_key(changes: dict[str, Any], error: str) -> None:
    with pytest.raises(SourceError, match=error):
        parse(_original(**changes), 0, "dev")
