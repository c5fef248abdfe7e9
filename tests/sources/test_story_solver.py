"""The solver of arithmetic stories: every generated story read back exactly, whole, with a gap, and with a twin."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from rc1_lib.pool.prompting import take_out
from rc1_lib.records import Question, Slot, Twin
from rc1_lib.sources.embedded import generate
from rc1_lib.sources.embedded.lexicon import lexicon
from rc1_lib.sources.embedded.story_solver import story_answers
from rc1_lib.sources.embedded.story_words import story_words

PAGE = "Urvwun of Munkenna has 318 pears. Glimlim has 12 pears fewer than Urvwun. Then Osknor brought 5 more pears."
ASK = "How many pears do Urvwun and Glimlim have together in Munkenna?"


@cache
def questions(seed: int = 20) -> tuple[Question, ...]:
    return tuple(generate("gsm8k", 400, seed, chinese_share=0.5))


def with_twin() -> list[tuple[Question, Twin]]:
    return [(question, question.twin) for question in questions() if question.twin]


def answers(question: Question, *added: str, value: str | None = None) -> set[str] | None:
    texts = [*(page.text for page in question.passages), *added]
    found = story_answers(question.lang, question.ask, texts, value)
    return None if found is None else set(found)


def reduced(question: Question) -> tuple[Question, Slot]:
    assert question.slot is not None
    return take_out(question, question.slot), question.slot


def vague(question: Question, twin: Twin) -> Question:
    """The question without the person's name, in a world with both stories."""
    return replace(take_out(question, twin.slot), passages=(*question.passages, *twin.passages))


def test_a_whole_story_has_its_answer_as_a_page_and_as_a_quote() -> None:
    for question in questions():
        assert answers(question) == {question.answer}, question.id
        quote = "Context: " + lexicon(question.lang).joint.join(question.support)
        assert answers(replace(question, passages=()), quote) == {question.answer}, question.id


def test_a_story_without_its_number_is_open_and_every_number_would_give_another_answer() -> None:
    for question in questions():
        gone, slot = reduced(question)
        assert answers(gone) is None, question.id
        assert answers(gone, value="a number") is None
        assert answers(gone, value=slot.value) == {question.answer}, question.id
        others = [answers(gone, value=str(int(slot.value) * factor)) for factor in (2, 3, 7)]
        assert {question.answer} not in others and None not in others, question.id


def test_a_gap_is_filled_by_its_sentence_elsewhere() -> None:
    for question in questions()[:100]:
        gone, _ = reduced(question)
        original = lexicon(question.lang).joint.join(question.support)
        assert answers(gone, original) == {question.answer}, question.id


def test_a_story_with_a_twin_has_two_answers_until_the_person_is_named() -> None:
    assert len(with_twin()) > 80 and {question.lang for question, _ in with_twin()} == {"en", "zh"}
    for question, twin in with_twin():
        two = vague(question, twin)
        assert answers(two) == {question.answer, twin.answer} and question.answer != twin.answer, question.id
        quotes = lexicon(question.lang).joint.join((*twin.described, *twin.support))
        assert answers(replace(two, passages=()), quotes) == {question.answer, twin.answer}, question.id
        assert answers(two, value=twin.slot.value) == {question.answer}, question.id
        assert answers(replace(two, ask=question.ask)) == {question.answer}, question.id


def test_a_twin_tells_the_same_of_somebody_else_with_other_numbers() -> None:
    for question, twin in with_twin():
        assert twin.slot.way == "ambiguous" and twin.slot.value in " ".join(question.support)
        assert twin.slot.value not in twin.passages[0].text
        assert twin.slot.vague in take_out(question, twin.slot).ask
        assert not {page.title for page in twin.passages} & {page.title for page in question.passages}
        assert [step.argument for step in twin.steps if step.tool == "wiki"] == [twin.passages[0].title]
        assert twin.steps[-1].result == twin.answer
        assert twin.support == tuple(text for text in twin.support if text in twin.passages[0].text)
        assert len(question.steps) == len(twin.steps) <= 3


def test_a_decoy_changes_no_answer_and_tells_nothing_of_what_is_counted() -> None:
    for question in questions():
        assert question.decoy is not None and question.decoy.title == question.passages[0].title
        vague_words = lexicon(question.lang).vague["number"]
        assert any(word in question.decoy.vague for word in vague_words)
        joint = lexicon(question.lang).joint
        page = replace(question.passages[0], text=question.passages[0].text + joint + question.decoy.vague)
        assert answers(replace(question, passages=(page,))) == {question.answer}, question.id
        things = {thing for pairs in story_words(question.lang).counted.values() for _, thing in pairs}
        counted = {thing for thing in things if f" {thing} " in question.ask}
        assert not any(thing in question.decoy.vague.replace(".", " ").split() for thing in counted), question.id


@pytest.mark.parametrize(
    ("texts", "ask", "expected"),
    [
        ([PAGE], ASK, {"629"}),
        ([PAGE, PAGE], ASK, {"629"}),
        ([PAGE.replace("Then", "If the old rolls are right, then")], ASK, {"629"}),
        ([PAGE.replace(" than Urvwun.", " than Urvwun, or so monks say.")], ASK, {"629"}),
        ([PAGE.replace("12", "some")], ASK, None),
        ([PAGE.replace("12", "some"), "Glimlim has 12 pears fewer than Urvwun."], ASK, {"629"}),
        ([PAGE.replace("12", "some"), "Glimlim has 12 pears fewer than Osknor."], ASK, None),
        ([PAGE, PAGE.replace("12", "13")], ASK, {"629", "628"}),
        ([PAGE.replace("5 more", "5…")], ASK, None),
        ([PAGE.split(". ")[0] + "."], ASK, None),
        ([PAGE], ASK.replace("Munkenna", "Abramere"), None),
        ([PAGE], ASK.replace("pears", "drums"), None),
        ([PAGE], "How many pears are there?", None),
        ([PAGE.replace("318", str(10**18))], ASK, None),
        ([], ASK, None),
    ],
)
def test_texts_and_the_answers_that_they_allow(texts: list[str], ask: str, expected: set[str] | None) -> None:
    assert story_answers("en", ask, texts) == expected
