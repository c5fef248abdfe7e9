"""Decide which question goes where: the shadow set first, then the pool.

Counting and seeded shuffles decide everything before a single row is written, so that any number of workers can write
the rows in any order.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import SourceError
from rc1_lib.numbers.sums import apportion
from rc1_lib.records import Question, Task
from rc1_lib.sources import shadow_counts
from rc1_lib.task_specs import task_spec
from rc1_lib.text.tokens import tokenize


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """A row to write. `use` counts the earlier rows of the same question."""

    id: str
    split: str
    question: Question
    use: int


def held_text(question: Question) -> str:
    """Return the text that training must not see: the question, after its story if it is a word problem."""
    return "\n".join((*question.support, question.ask)) if task_spec(question.task).word_problem else question.ask


def split_shadow(
    config: RunConfig, questions: Mapping[Task, Sequence[Question]]
) -> tuple[list[Question], list[Question]]:
    """Return the questions of the shadow set, and all other questions.

    Raises:
        SourceError: when a task has fewer questions than the shadow set takes.
    """
    held, free = [], []
    for task, count in shadow_counts(config).items():
        shuffled = _shuffled(questions[task], f"{config.shadow.seed}/shadow/{task}")
        # The leak gate cannot check a question shorter than its n-grams, so such questions are never held out.
        shortest = config.gates.leakage.ngram
        checkable = [question for question in shuffled if len(tokenize(held_text(question))) >= shortest]
        if len(checkable) < count or len(shuffled) == count:
            raise SourceError(
                f"source of {task}: {len(checkable)} usable questions, but the shadow set alone takes {count}; "
                f"give more questions or lower shadow.n"
            )
        chosen = {question.id for question in checkable[:count]}
        held += checkable[:count]
        free += [question for question in shuffled if question.id not in chosen]
    return held, free


def _shuffled(questions: Sequence[Question], seed: str) -> list[Question]:
    # Procedural questions are random draws already. They keep their order, so that the shadow set, which takes the
    # first ones, stays the same however many are made.
    if all(question.source == "embedded" for question in questions):
        return list(questions)
    shuffled = sorted(questions, key=lambda question: question.id)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def plan_shadow(questions: Sequence[Question]) -> list[PlannedRow]:
    """Return the shadow rows, in the order drawn."""
    return _numbered([(question, 0) for question in questions], "shadow")


def plan_pool(config: RunConfig, questions: Sequence[Question]) -> list[PlannedRow]:
    """Return the pool's rows, with tasks mixed; every question is used once before any is used again.

    Raises:
        SourceError: when a task has too few questions for its share, even with `sources.max_uses`.
    """
    rows: list[PlannedRow] = []
    for task, count in apportion(config.pool.n, config.datasets).items():
        of_task = [question for question in questions if question.task == task]
        of_task.sort(key=lambda question: question.id)
        random.Random(f"{config.pool.seed}/pool/{task}").shuffle(of_task)
        # A finished dialogue cannot be posed differently: a second use would be a plain copy.
        uses = [
            (question, use)
            for use in range(config.sources.max_uses)
            for question in of_task
            if use == 0 or question.dialogue is None
        ]
        if len(uses) < count:
            raise SourceError(
                f"source of {task}: {len(of_task)} questions are left for the pool, which needs {count} rows, and each "
                f"may be used {config.sources.max_uses} times; the shadow set has taken "
                f"{shadow_counts(config)[task]} (shadow.n), and what repeats one of them is left out. Lower pool.n or "
                f"shadow.n, change the mix (datasets), raise sources.max_uses or add questions"
            )
        rows += _numbered(uses[:count], "pool")
    random.Random(f"{config.pool.seed}/order").shuffle(rows)
    return rows


def _numbered(uses: Sequence[tuple[Question, int]], split: str) -> list[PlannedRow]:
    return [
        PlannedRow(f"{split}-{question.task}-{number:06d}", split, question, use)
        for number, (question, use) in enumerate(uses)
    ]
