"""The exact solver of looked-up facts: what is missing is missing, what is complete is complete, and nothing else."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from rc1_lib.pool.prompting import How, posed_as
from rc1_lib.records import Question, Task
from rc1_lib.sources.embedded import generate
from rc1_lib.sources.embedded.solver import lookup_answers

TASKS: tuple[Task, ...] = ("hotpotqa", "strategyqa")
WAYS: tuple[How, ...] = ("complete", "decoy", "unique", "gone", "ambiguous")


@cache
def questions(task: Task) -> tuple[Question, ...]:
    return tuple(generate(task, 300, 41, 0.3))


def texts(question: Question, how: How, *, told: bool = False) -> list[str]:
    """What can be read: everything but the pages that only the user's reply leads to."""
    hidden = question.slot.hides if how == "gone" and question.slot and not told else ()
    return [page.text for page in posed_as(question, how).passages if page.title not in hidden]


def possible(question: Question, how: How) -> bool:
    return {"decoy": question.decoy, "unique": question.twin, "gone": question.slot, "ambiguous": question.twin}.get(
        how, True
    ) is not None


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("how", WAYS[:3])
def test_a_complete_question_has_one_answer_however_vague_it_sounds(task: Task, how: How) -> None:
    for question in questions(task):
        if possible(question, how):
            found = lookup_answers(question.lang, posed_as(question, how).ask, texts(question, how))
            assert found == {question.answer}, (question.id, how)


@pytest.mark.parametrize("task", TASKS)
def test_an_illegible_fact_leaves_several_answers_until_the_user_tells_it(task: Task) -> None:
    chances: Counter[int] = Counter()
    for question in questions(task):
        if question.slot:
            found = lookup_answers(question.lang, question.ask, texts(question, "gone"))
            assert found is None or len(found) > 1, question.id
            chances[len(found or ())] += 1
            told = texts(question, "gone", told=True)
            assert lookup_answers(question.lang, question.ask, told, question.slot.value) == {question.answer}
    assert set(chances) <= {0, 2}  # no end of answers, or one of two


@pytest.mark.parametrize("task", TASKS)
def test_a_description_that_fits_two_things_leaves_their_two_answers(task: Task) -> None:
    for question in questions(task):
        if question.twin:
            ask, read = posed_as(question, "ambiguous").ask, texts(question, "ambiguous")
            assert lookup_answers(question.lang, ask, read) == {question.answer, question.twin.answer}, question.id
            assert lookup_answers(question.lang, ask, read, question.twin.slot.value) == {question.answer}


@pytest.mark.parametrize("task", TASKS)
def test_knowing_one_of_two_compared_numbers_tells_nothing(task: Task) -> None:
    """The larger of the two is named first as often as not, whatever the first number is."""
    sides: Counter[tuple[bool, bool]] = Counter()
    for question in generate(task, 3000, 43, 0.0):
        last = question.steps[-1]
        if last.tool == "calc" and last.result in ("yes", "no") and len(question.steps) == 3:
            first = int(last.argument.replace(">", "<").split("<")[0])
            sides[first > 450, last.result == "yes"] += 1
    for large in (True, False):
        share = sides[large, True] / (sides[large, True] + sides[large, False])
        assert 0.4 < share < 0.6, sides
