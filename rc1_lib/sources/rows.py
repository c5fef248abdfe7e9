"""Finished dialogues as a source: JSONL in the pool's own schema, taken as they are.

Such rows are not posed anew: they keep their wording, and only their id, split and use are set by the builder.
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


def load_rows(path: Path, tasks: Sequence[Task]) -> dict[Task, Loaded]:
    """The rows of `path` by task, each as a question that brings its dialogue along.

    Raises:
        SourceError: when a task has no rows.
        RowError: when the file does not hold rows of the pool's schema; the sentence names line and key.
    """
    check_rows(read_rows(path), path)
    found: dict[Task, list[Question]] = {task: [] for task in tasks}
    others = 0
    with path.open("rb") as stream:
        for line in filter(bytes.strip, stream):
            row = orjson.loads(line)
            if row["task"] in found:
                found[row["task"]].append(_question(row))
            else:
                others += 1
    missing = [task for task, questions in found.items() if not questions]
    if missing:
        raise SourceError(f"{path}: holds no rows of {', '.join(missing)}; add some or change --mix")
    return {task: Loaded(tuple(questions), {}) for task, questions in found.items()}


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
