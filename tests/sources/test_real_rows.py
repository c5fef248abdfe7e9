"""All rows of the public data sets: how many become questions, and properties of every question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rc1_lib.numbers.calculator import calculate
from rc1_lib.records import Question, Task
from rc1_lib.sources.loaded import Loaded
from rc1_lib.sources.local import load_local
from rc1_lib.task_specs.wording import occurrences

TASKS = ("hotpotqa", "strategyqa", "gsm8k")


@pytest.fixture(scope="module")
def loaded(shared_data: Path) -> Mapping[Task, Loaded]:
    return load_local(shared_data, TASKS)


@pytest.fixture(scope="module")
def questions(loaded: Mapping[Task, Loaded]) -> list[Question]:
    return [question for part in loaded.values() for question in part.questions]


def test_nearly_all_public_rows_become_questions_and_the_rest_are_counted(loaded: Mapping[Task, Loaded]) -> None:
    counts = {task: (len(part.questions), dict(part.skipped)) for task, part in loaded.items()}
    assert counts == {
        "gsm8k": (7375, {"no calculator marks": 95, "no story": 3}),
        "strategyqa": (2060, {"duplicate question": 1}),
        "hotpotqa": (296, {"duplicate question": 4}),
    }


def test_page_titles_are_distinct_and_every_wiki_step_has_its_page(questions: list[Question]) -> None:
    for question in questions:
        pages = {page.title: page.text for page in question.passages}
        assert len(pages) == len(question.passages), question.id
        assert all(pages[step.argument] == step.result for step in question.steps if step.tool == "wiki"), question.id


def test_every_supporting_sentence_is_on_a_page_that_the_solution_looks_up(questions: list[Question]) -> None:
    for question in questions:
        pages_read = " ".join(step.result for step in question.steps if step.tool == "wiki")
        assert all(sentence in pages_read for sentence in question.support), question.id


def test_the_calculator_reproduces_the_result_of_every_step(questions: list[Question]) -> None:
    steps = [step for question in questions for step in question.steps if step.tool == "calc"]
    assert len(steps) > 20_000
    assert all(calculate(step.argument) == step.result for step in steps)


def test_missing_information_occurs_exactly_once_and_not_in_other_texts(questions: list[Question]) -> None:
    for question in questions:
        if (slot := question.slot) is None:
            continue
        if slot.where == "ask":
            fields = [question.ask]
        else:
            assert occurrences(slot.value, question.ask) == 0, question.id
            fields = [" ".join(page.text for page in question.passages), " ".join(question.support)]
        assert [occurrences(slot.value, text) for text in fields] == [1] * len(fields), question.id
        assert not any(occurrences(slot.value, text) for text in (slot.wanted, slot.vague)), question.id
        listed = [page.title for page in question.passages if page.title not in slot.hides]
        assert not any(occurrences(slot.value, title) for title in listed), question.id


def test_many_questions_can_have_missing_information(loaded: Mapping[Task, Loaded]) -> None:
    share = {
        task: sum(q.slot is not None for q in part.questions) / len(part.questions) for task, part in loaded.items()
    }
    assert share["gsm8k"] > 0.6 and share["strategyqa"] > 0.35 and share["hotpotqa"] > 0.25


def test_three_questions_equal_those_worked_out_by_hand(loaded: Mapping[Task, Loaded]) -> None:
    by_id = {question.id: question for part in loaded.values() for question in part.questions}
    clips = by_id["gsm8k/train/0"]
    assert clips.answer == "72" and [step.argument for step in clips.steps[1:]] == ["48/2", "48+24"]
    assert clips.slot is not None and (clips.slot.value, clips.slot.wanted) == ("48", "how many of her friends")
    khan = by_id["strategyqa/train/0"]
    assert khan.answer == "yes" and [page.title for page in khan.passages] == ["Julius Caesar", "Genghis Khan"]
    assert khan.slot is not None and khan.slot.value == "Genghis Khan"
    directors = by_id["hotpotqa/distractor_meve_dev100_hfform/0"]
    assert directors.answer == "yes" and [step.argument for step in directors.steps] == ["Scott Derrickson", "Ed Wood"]
    assert len(directors.passages) == 10
