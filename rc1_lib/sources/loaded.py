"""What a source returns: the questions of one task, and how many records were left out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rc1_lib.errors import SourceError
from rc1_lib.records import Question
from rc1_lib.task_specs import task_spec
from rc1_lib.task_specs.spec import Parser, UnusableRecord

_SHOWN = 3
"""Most damaged records that a message lists."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The questions of one task, in the order of the source.

    Attributes:
        questions: all usable questions, without duplicates.
        skipped: reason -> number of records left out.
    """

    questions: tuple[Question, ...]
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One raw record.

    Attributes:
        index: its number within its origin.
        origin: the name of its file or split, for ids.
        file: the file or the data set, for errors.
        place: where in the file the record is, for errors.
    """

    record: Mapping[str, Any]
    index: int
    origin: str
    file: str
    place: str


def collect(entries: Iterable[Entry], parse: Parser, max_unusable: float) -> Loaded:
    """Parse all entries, keep the first of duplicate questions, and count what was left out by reason.

    Args:
        entries: the records of one task.
        parse: the task's parser.
        max_unusable: largest share of the entries in which a key may be missing or of another type.

    Raises:
        SourceError: when the share is larger; the message names places and keys, and says what was found.
    """
    questions: dict[str, Question] = {}
    skipped: Counter[str] = Counter()
    damaged: list[tuple[Entry, SourceError]] = []
    read = 0
    for entry in entries:
        read += 1
        try:
            question = parse(entry.record, entry.index, entry.origin)
        except UnusableRecord as unusable:
            skipped[unusable.reason] += 1
            continue
        except SourceError as error:
            damaged.append((entry, error))
            continue
        key = " ".join(" ".join(wording(question)).casefold().split())
        if key in questions:
            skipped["duplicate question"] += 1
        else:
            questions[key] = question
    if len(damaged) > max_unusable * read:
        faults = "; ".join(f"{entry.file}, {entry.place}: {error}" for entry, error in damaged[:_SHOWN])
        raise SourceError(
            f"{faults}. Unusable: {len(damaged):,} of {read:,} records ({len(damaged) / read:.2%}), and "
            f"{max_unusable:.2%} may be left out; correct the file or `sources.columns`, or remove these records. "
            "docs/how-to/own-source.md shows the form of each task"
        )
    if damaged:
        # File names without folders: the reason goes into the pool's manifest, which moves between machines.
        faults = "; ".join(f"{Path(entry.file).name}, {entry.place}: {error}" for entry, error in damaged[:_SHOWN])
        skipped[f"a key is missing or of another type ({faults})"] = len(damaged)
    return Loaded(tuple(questions.values()), dict(skipped))


def wording(question: Question) -> tuple[str, ...]:
    """Return the texts that distinguish a question from others of its task.

    The last sentence of a story ("How much did she earn?") is not enough, so a word problem's support is included.
    """
    return (*question.support, question.ask) if task_spec(question.task).word_problem else (question.ask,)


def require_questions(loaded: Loaded, place: str) -> Loaded:
    """Return `loaded` if it has a question.

    Raises:
        SourceError: when `place` has no usable question.
    """
    if not loaded.questions:
        reasons = ", ".join(f"{count} x {reason}" for reason, count in loaded.skipped.items()) or "it has no records"
        raise SourceError(
            f"{place}: no usable question ({reasons}). docs/how-to/own-source.md shows the form of this task's records"
        )
    return loaded
