"""Data sets whose columns have other names than a task's keys (`sources.columns`), and whether such a mapping holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.answer_rules.check import ask_rule
from rc1_lib.answer_rules.golds import Gold, sample
from rc1_lib.errors import SourceError
from rc1_lib.records import Question, SourceKey, Task
from rc1_lib.sources.loaded import Loaded
from rc1_lib.task_specs import task_spec
from rc1_lib.task_specs.spec import Parser

_TRIED = 60
"""Golds to make answers of, some 4,000 answers: a few seconds. The gate takes 200."""


def parser_of(task: Task, columns: Mapping[SourceKey, str]) -> Parser:
    """Return the task's parser, which finds its keys in these columns; keys that are not mapped keep their names.

    Args:
        columns: key -> column. A dot leads into a column with parts: `answers.text`.
    """
    parse = task_spec(task).parse
    if not columns:
        return parse

    def renamed(record: Mapping[str, Any], index: int, origin: str) -> Question:
        try:
            found: dict[str, Any] = {key: _column(record, name) for key, name in columns.items()}
            return parse({**record, **found}, index, origin)
        except SourceError as error:
            raise SourceError(f"{str(error).rstrip('.')} (sources.columns.{task})") from None

    return renamed


def require_rule(task: Task, loaded: Loaded, place: str, key: str = "sources.columns") -> Loaded:
    """Return `loaded` if the task's answer rule accepts right spellings of its answers, and no wrong answers.

    The rule is tried as the gate `answer_rule` tries it, before anything is built.

    Args:
        task: the task.
        loaded: its questions.
        place: the file, folder or data set, for errors.
        key: the section of the configuration in which `task` names the data set, for errors.

    Raises:
        SourceError: names `place`, the key, what the rule judges wrongly, and what to do.
    """
    golds = [
        Gold(one.answer, one.aliases, one.ask, max((page.text for page in one.passages), key=len, default=""), one.id)
        for one in loaded.questions
    ]
    report = ask_rule(task_spec(task).is_right, sample(golds, _TRIED))
    if fault := report.fault:
        raise SourceError(
            f"{place}: {key}.{task}: the rule of '{task}' does not fit these answers: {fault}. Take answers of "
            f"another column or data set, or the task of their form: any_number, any_verdict (yes or no), any_text"
        )
    return loaded


def _column(record: Mapping[str, Any], name: str) -> Any:
    value: Any = record
    parts = [name] if name in record else name.split(".")
    for part in parts:
        if not isinstance(value, Mapping) or part not in value:
            known = ", ".join(map(str, value)) if isinstance(value, Mapping) else f"no parts in {value!r:.60}"
            raise SourceError(f"the column '{name}' is missing (found: {known})")
        value = value[part]
    return value
