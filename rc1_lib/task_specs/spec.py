"""The description of a task: how it is read, worded, played and verified."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rc1_lib.answer_rules import AnswerRule
from rc1_lib.answer_rules.message import Unmarked, last_statement
from rc1_lib.errors import TaskError
from rc1_lib.records import Question, Row

if TYPE_CHECKING:
    from rc1_lib.rows.closure import Closure

Parser = Callable[[Mapping[str, Any], int, str], Question]
"""(record of the public files, its number, the name of its source) -> the question."""
Guess = Callable[[Question, random.Random], str]
"""The scripted expert's answer without evidence."""
Solver = Callable[[Row, "Closure"], frozenset[str] | None]
"""(row, what can be reached in it) -> the answers that are possible then; None if any number of answers is.

The row has nothing but what the policy can see: no answer, no label and no page that cannot be reached.
"""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class UnusableRecord(Exception):
    """A valid record that cannot become a clean question; `reason` is a short name for counting."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One task.

    Attributes:
        name: its name in the configuration, rows, folders and tables; ids and paths contain it.
        label: its name in pictures.
        template_kind: the kind of templates for its prompts; the packs in use must have some.
        parse: reads a record; raises `SourceError` for an invalid one, `UnusableRecord` for one to leave out.
        is_right: the data set's own rule for answers.
        guess: the scripted expert's answer without evidence.
        unmarked: finds the answer in a final message without an answer mark.
        word_problem: whether the facts are a story that belongs to the question: two questions are alike only if their
            stories are, and the story is held out and searched for too.
        borrows_pages: whether a question with few pages gets pages of other questions as distractors.
        multi_hop: whether the evaluation's figure `success_hard` includes this task.
        hub_config: the configuration of the data set on the hub; None if there is only one.
        answers: the exact solver of the task's questions, by which the gate `missing_piece` judges whether the answer
            is determined; None if the task has none.
    """

    name: str
    label: str
    template_kind: str
    parse: Parser
    is_right: AnswerRule
    guess: Guess
    unmarked: Unmarked = last_statement
    word_problem: bool = False
    borrows_pages: bool = True
    multi_hop: bool = False
    hub_config: str | None = None
    answers: Solver | None = None

    def __post_init__(self) -> None:
        """Reject names that cannot be part of an id or folder."""
        for field in ("name", "template_kind"):
            if not _NAME.fullmatch(getattr(self, field)):
                raise TaskError(
                    f"a task's {field} is '{getattr(self, field)}', expected a lower-case letter, then letters, "
                    f"digits and underscores, such as hotpotqa"
                )
