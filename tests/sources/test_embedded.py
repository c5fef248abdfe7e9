"""The embedded source: exact, distinct and balanced."""

from __future__ import annotations

import re
from functools import cache

import pytest

from rc1_lib.errors import SourceError
from rc1_lib.numbers.calculator import calculate
from rc1_lib.records import Language, Question, Task
from rc1_lib.sources.embedded import EMBEDDED_TASKS as TASKS
from rc1_lib.sources.embedded import generate
from rc1_lib.sources.embedded.lexicon import lexicon
from rc1_lib.sources.embedded.multihop import forms as multihop_forms
from rc1_lib.sources.embedded.multihop import wordings as multihop_wordings
from rc1_lib.sources.embedded.relations import relations
from rc1_lib.sources.embedded.story_openings import OPENINGS
from rc1_lib.sources.embedded.story_turns import TURNS
from rc1_lib.sources.embedded.story_words import story_words
from rc1_lib.sources.embedded.word_files import FOLDER, open_words
from rc1_lib.sources.embedded.yesno import KINDS, wordings

WORD = re.compile(r"[\u4e00-\u9fff]|[a-z0-9']+")


@cache
def questions(task: Task, seed: int = 7, count: int = 5000) -> tuple[Question, ...]:
    return tuple(generate(task, count, seed))


def all_text(question: Question) -> str:
    pages = (*question.passages, *(question.twin.passages if question.twin else ()))
    decoy = question.decoy.vague if question.decoy else ""
    return " ".join(filter(None, [question.ask, *question.support, *(page.text for page in pages), decoy]))


@pytest.mark.parametrize("task", TASKS)
def test_every_step_has_the_result_of_its_page_or_of_the_calculator(task: Task) -> None:
    for question in questions(task):
        pages = {page.title: page.text for page in question.passages}
        assert len(pages) == len(question.passages)
        for step in question.steps:
            expected = pages[step.argument] if step.tool == "wiki" else calculate(step.argument)
            assert step.result == expected, question.id


@pytest.mark.parametrize("task", TASKS)
def test_supporting_sentences_are_on_the_pages_that_the_solution_looks_up(task: Task) -> None:
    for question in questions(task):
        looked_up = [step.argument for step in question.steps if step.tool == "wiki"]
        assert [page.title for page in question.passages[: len(looked_up)]] == looked_up
        pages_read = [page.text for page in question.passages[: len(looked_up)]]
        assert all(any(sentence in text for text in pages_read) for sentence in question.support), question.id


def test_half_of_the_answers_are_yes_in_both_languages() -> None:
    for lang in ("en", "zh"):
        answers = [question.answer for question in questions("strategyqa") if question.lang == lang]
        assert 0.45 <= answers.count("yes") / len(answers) <= 0.55


def test_each_story_is_on_one_page() -> None:
    for question in questions("gsm8k"):
        (page,) = question.passages
        assert page.text == lexicon(question.lang).joint.join(question.support)
        assert question.answer == question.steps[-1].result
        assert page.title not in question.ask + page.text


@pytest.mark.parametrize("task", TASKS)
def test_missing_information_occurs_exactly_once_in_all_that_can_be_reached(task: Task) -> None:
    for question in questions(task):
        if slot := question.slot:
            assert (slot.where, slot.way) == ("story", "gone")
            seen = [page for page in question.passages if page.title not in slot.hides]
            reached = " ".join((question.ask, *(text for page in seen for text in (page.title, page.text))))
            assert len(re.findall(rf"(?<!\d){slot.value}(?!\d)", reached)) == 1, question.id
            assert slot.value not in slot.vague + slot.wanted
            assert task == "gsm8k" or question.answer != slot.value
        if twin := question.twin:
            assert (twin.slot.where, twin.slot.way) == ("ask", "ambiguous")
            assert question.ask.count(twin.slot.value) == 1
            assert twin.slot.value not in twin.slot.vague + twin.slot.wanted + "".join(twin.support)


def test_most_questions_can_be_posed_in_both_ways_and_all_in_one() -> None:
    for task, gone, ambiguous in (("hotpotqa", 0.99, 0.6), ("strategyqa", 0.8, 0.9), ("gsm8k", 0.99, 0.2)):
        found = questions(task)
        assert all(question.slot or question.twin for question in found)
        assert sum(question.slot is not None for question in found) / len(found) > gone
        assert sum(question.twin is not None for question in found) / len(found) > ambiguous


@pytest.mark.parametrize("task", TASKS)
def test_the_same_seed_gives_the_same_questions_for_any_count(task: Task) -> None:
    assert generate(task, 50, 7) == list(questions(task)[:50])
    assert generate(task, 50, 8) != generate(task, 50, 7)
    assert [question.id for question in generate(task, 3, 9)] == [f"embedded/{task}/9/{i}" for i in range(3)]


@pytest.mark.parametrize("count", [3000, pytest.param(18000, marks=pytest.mark.long)])
@pytest.mark.parametrize("task", TASKS)
def test_thousands_of_questions_of_a_task_are_all_different(task: Task, count: int) -> None:
    many = generate(task, count, 20250820)
    sentences = [" ".join((q.ask, *q.support)) if task == "gsm8k" else q.ask for q in many]
    assert len({" ".join(WORD.findall(text.lower())) for text in sentences}) == count
    assert 0.18 <= sum(question.lang == "zh" for question in many) / count <= 0.22


def test_names_are_single_words_that_no_other_text_uses() -> None:
    for names in (lexicon("en").names, lexicon("zh").names):
        every = [name for kind in names.values() for name in kind]
        assert len(every) == len(set(every)) == 700 + 350 + 250
        assert all(name.isalpha() for name in every)
    files = [path.stem for path in sorted((FOLDER / "en").glob("*.yaml")) if path.stem != "names"]
    wording = "\n".join(repr(open_words(f"en/{name}").value) for name in files)
    assert not {word.lower() for word in re.findall(r"[A-Za-z]+", wording)} & {
        name.lower() for kind in lexicon("en").names.values() for name in kind
    }


@pytest.mark.parametrize("lang", ("en", "zh"))
def test_every_kind_has_at_least_three_wordings_in_both_languages(lang: Language) -> None:
    forms, story = multihop_forms(), story_words(lang)
    assert len(forms) >= 28 and len(KINDS) >= 12 and len(OPENINGS) >= 18
    assert lexicon(lang).facts.keys() == relations().by_name.keys()
    assert multihop_wordings(lang).keys() == forms.keys()
    assert wordings(lang).keys() == KINDS.keys()
    assert story.parts.keys() == OPENINGS.keys() | TURNS.keys()
    sentences = {key: part.wordings for key, part in story.parts.items()}
    for table in (lexicon(lang).facts, multihop_wordings(lang), wordings(lang), sentences, story.asks):
        assert all(len(set(lines)) >= 3 for lines in table.values())


@pytest.mark.parametrize("task", TASKS)
def test_texts_have_no_open_slots_double_spaces_or_repeated_words(task: Task) -> None:
    for question in questions(task):
        text = all_text(question)
        assert not re.search(r"[{}|]|  |\.\.|。。|，，", text), question.id
        assert question.lang == "en" or not re.search(r"[A-Za-z ]", question.ask + "".join(question.support))
        assert question.ask.endswith(("?", "？"))
        assert not re.search(r"\b([A-Za-z]+) \1\b", text), question.id
        assert not any(trade * 2 in text for trade in lexicon(question.lang).words["trades"]), question.id


def test_invalid_arguments_raise_an_error() -> None:
    with pytest.raises(SourceError, match=r"'trivia'.*hotpotqa"):
        generate("trivia", 1, 1)  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="0 or more"):
        generate("gsm8k", -1, 1)
    with pytest.raises(SourceError, match="between 0 and 1"):
        generate("gsm8k", 1, 1, chinese_share=1.5)
