"""Distractor pages for questions with too few of their own, borrowed from other questions of the task.

If every page were needed, a policy could learn nothing about choosing pages.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rc1_lib.pool.prompting import DISTRACTORS
from rc1_lib.records import Passage, Question, Task
from rc1_lib.task_specs import task_spec


def lend_pages(questions: Mapping[Task, Sequence[Question]], seed: int) -> dict[Task, list[Question]]:
    """Return the questions, where the task borrows pages with as many distractors as any recipe may list."""
    wanted = max(most for _, most in DISTRACTORS.values())
    return {
        task: _borrow_pages(of_task, wanted, seed) if task_spec(task).borrows_pages else list(of_task)
        for task, of_task in questions.items()
    }


def _borrow_pages(questions: Sequence[Question], wanted: int, seed: int) -> list[Question]:
    shelf = [page for question in questions for page in question.passages[:2]]
    return [_with_pages(question, shelf, wanted, seed) for question in questions]


def _with_pages(question: Question, shelf: Sequence[Passage], wanted: int, seed: int) -> Question:
    needed = {step.argument for step in question.steps if step.tool == "wiki"}
    missing = wanted - sum(page.title not in needed for page in question.passages)
    if missing <= 0 or question.dialogue is not None:
        return question
    # A page titled like the answer or one of the question's own pages would not be a distractor.
    forbidden = {page.title.casefold() for page in question.passages} | {question.answer.casefold()}
    rng = random.Random(f"{seed}/lend/{question.id}")
    lent: dict[str, Passage] = {}
    for page in rng.sample(shelf, min(len(shelf), 4 * missing)):
        if len(lent) < missing and page.title.casefold() not in forbidden:
            lent[page.title] = page
    return replace(question, passages=(*question.passages, *lent.values()))
