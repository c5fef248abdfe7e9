"""What a source returns: the questions of one task, and how many records it left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rc1_lib.errors import SourceError
from rc1_lib.records import Question
from rc1_lib.task_specs import task_spec
from rc1_lib.task_specs.spec import Parser, UnusableRecord


@dataclass(frozen=True, slots=True)
class Loaded:
    """The questions of one task, in the order of the source.

    Attributes:
        questions: every usable question, no two with the same text.
        skipped: reason -> number of records left out for it.
    """

    questions: tuple[Question, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One raw record: its number within its origin, the origin's name for ids, and its place for errors."""

    record: Mapping[str, Any]
    index: int
    origin: str
    place: str


def collect(entries: Iterable[Entry], parse: Parser) -> Loaded:
    """Parse all entries; keep the first of those that ask the same, and count unusable ones by reason.

    Raises:
        SourceError: a record has the wrong structure (the message starts with its place).
    """
    questions: dict[str, Question] = {}
    skipped: Counter[str] = Counter()
    for entry in entries:
        try:
            question = parse(entry.record, entry.index, entry.origin)
        except UnusableRecord as unusable:
            skipped[unusable.reason] += 1
            continue
        except SourceError as error:
            raise SourceError(f"{entry.place}: {error}") from error
        key = " ".join(" ".join(wording(question)).casefold().split())
        if key in questions:
            skipped["duplicate question"] += 1
        else:
            questions[key] = question
    return Loaded(tuple(questions.values()), dict(skipped))


def wording(question: Question) -> tuple[str, ...]:
    """The texts that distinguish a question from others of its task.

    A story's last sentence ("How much did she earn?") is not enough: its support distinguishes two of them.
    """
    return (*question.support, question.ask) if task_spec(question.task).word_problem else (question.ask,)


def require_questions(loaded: Loaded, place: str) -> Loaded:
    """Return `loaded`. Raises SourceError if `place` gave no usable question."""
    if not loaded.questions:
        reasons = ", ".join(f"{count} x {reason}" for reason, count in loaded.skipped.items()) or "it has no records"
        raise SourceError(f"{place}: no usable question ({reasons}). Use the data set's original files.")
    return loaded
