"""Finished dialogues as a source: JSONL in the pool's own schema, used unchanged.

Such rows are not posed again: they keep their wording, and the builder sets only their id, split and use.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson

from rc1_lib.errors import SourceError
from rc1_lib.records import Passage, Question, Row, Task
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.schema import check_rows
from rc1_lib.sources.loaded import Loaded
from rc1_lib.workspace.input_files import open_text


def load_rows(path: Path, tasks: Sequence[Task]) -> dict[Task, Loaded]:
    """The rows of `path` by task, each as a question with its finished dialogue.

    Raises:
        SourceError: when a task has no rows.
        RowError: when the file does not contain rows of the pool's schema; the message names line and key.
    """
    found: dict[Task, list[Question]] = {task: [] for task in tasks}
    for question in read_questions(path):
        if question.task in found:
            found[question.task].append(question)
    missing = [task for task, questions in found.items() if not questions]
    if missing:
        raise SourceError(f"{path}: has no rows of {', '.join(missing)}; add some or change --mix")
    return {task: Loaded(tuple(questions), {}) for task, questions in found.items()}


def read_questions(path: Path) -> list[Question]:
    """The question of each row of `path`, in order.

    Raises:
        RowError: when the file does not contain rows of the pool's schema; the message names line and key.
    """
    check_rows(read_rows(path), path)
    with open_text(path) as stream:
        return [_question(orjson.loads(line)) for line in filter(bytes.strip, stream)]


def _question(row: Row) -> Question:
    return Question(
        id=row["source_id"],
        task=row["task"],
        source=row["source"],
        lang=row["lang"],
        ask=row["question"],
        support=tuple(row["support"]),
        passages=tuple(Passage(page["title"], page["text"]) for page in row.get("passages") or ()),
        steps=(),
        answer=row["answer"],
        aliases=tuple(row.get("aliases") or ()),
        dialogue=row,
    )
