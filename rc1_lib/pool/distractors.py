"""Distractor pages for questions with too few of their own, borrowed from other questions of the task.

If every page were needed, a policy could learn nothing about choosing pages.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from rc1_lib.pool.prompting import DISTRACTORS
from rc1_lib.records import Passage, Question, Task
from rc1_lib.task_specs import task_spec
from rc1_lib.task_specs.reach import reachable
from rc1_lib.task_specs.withheld_name import gives_away


def lend_pages(
    questions: Sequence[Question],
    lenders: Mapping[Task, Sequence[Question]],
    seed: int,
    *,
    withheld: Sequence[Question] = (),
) -> list[Question]:
    """Return the questions; if the task borrows pages, with as many distractors as any recipe may list.

    No page of a `withheld` question is lent: next to a similar question its names would ask the withheld one. An
    embedded question neither lends nor borrows: it has distractors of its own, and a page of another world could tell
    what is missing from this one.
    """
    wanted = max(most for _, most in DISTRACTORS.values())
    shelves = {
        task: [page for question in of_task if question.source != "embedded" for page in question.passages[:2]]
        for task, of_task in lenders.items()
        if task_spec(task).borrows_pages
    }
    kept_back = frozenset(page.title.casefold() for question in withheld for page in question.passages)
    return [
        _with_pages(question, shelves[question.task], wanted, seed, kept_back) if question.task in shelves else question
        for question in questions
    ]


def _with_pages(question: Question, shelf: Sequence[Passage], wanted: int, seed: int, kept_back: Set[str]) -> Question:
    needed = {step.argument for step in question.steps if step.tool == "wiki"}
    missing = wanted - sum(page.title not in needed for page in question.passages)
    if missing <= 0 or question.dialogue is not None or question.source == "embedded":
        return question
    # A page titled like the answer or one of the question's own pages would not be a distractor.
    forbidden = {page.title.casefold() for page in question.passages} | {question.answer.casefold()} | kept_back
    rng = random.Random(f"{seed}/lend/{question.id}")
    lent: dict[str, Passage] = {}
    for page in rng.sample(shelf, min(len(shelf), 4 * missing)):
        if len(lent) < missing and page.title.casefold() not in forbidden and not _tells(page, question):
            lent[page.title] = page
    return replace(question, passages=(*question.passages, *lent.values()))


def _tells(page: Passage, question: Question) -> bool:
    """Return whether a borrowed page names what the question may withhold, or leads to a page that it hides."""
    slot = question.slot
    if slot is None or slot.where != "ask":
        return False
    text = f"{page.title}\n{page.text}"
    return gives_away(slot.value, text) or bool(reachable([text], dict.fromkeys(slot.hides, "")))
