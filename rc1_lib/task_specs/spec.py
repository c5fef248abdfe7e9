"""What RC1 knows of a task, as one frozen description: how it is read, worded, played and verified."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rc1_lib.answer_rules import AnswerRule
from rc1_lib.answer_rules.message import Unmarked, last_statement
from rc1_lib.errors import TaskError
from rc1_lib.records import Question

Parser = Callable[[Mapping[str, Any], int, str], Question]
"""One record of the public files, its number and the name of where it came from -> the question."""
Guess = Callable[[Question, random.Random], str]
"""What the scripted teacher answers where it lacks the evidence."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class UnusableRecord(Exception):
    """A record that is well formed but cannot become a clean question; `reason` is a short name to count by."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One task.

    Attributes:
        name: as the configuration, rows, folders of files and tables call it; ids and paths are made of it.
        label: as pictures call it.
        template_kind: the kind of templates that word its prompts; the packs in use must have some.
        parse: reads a record; raises `SourceError` for one of another form, `UnusableRecord` for one to leave out.
        is_right: the data set's own rule for answers.
        guess: what the scripted teacher says without the evidence.
        unmarked: what is taken as the answer of a final message that marks none.
        word_problem: whether the facts are a story that belongs to the question: two questions are alike only where
            their stories are, and what is held out or searched for is the story too.
        borrows_pages: whether a question with few pages of its own is lent those of others as distractors.
        multi_hop: whether it is one of the tasks that an evaluation's figure `success_hard` is about.
        hub_config: which configuration of the data set is read from the hub; None for the only one.
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

    def __post_init__(self) -> None:
        """Refuses names that no id or folder could be made of."""
        for field in ("name", "template_kind"):
            if not _NAME.fullmatch(getattr(self, field)):
                raise TaskError(
                    f"a task's {field} is '{getattr(self, field)}', expected a lower-case letter, then letters, "
                    f"digits and underscores, such as hotpotqa"
                )
