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
from rc1_lib.sources.loaded import Loaded
from rc1_lib.workspace.input_files import open_text

_SHOWN = 8
"""Most keys that a message lists."""


def load_rows(path: Path, tasks: Sequence[Task]) -> dict[Task, Loaded]:
    """Load the rows of `path` by task, each as a question with its finished dialogue.

    Raises:
        SourceError: when a task has no rows, or the file contains questions without dialogues.
        RowError: when the file does not contain rows of the pool's schema; the message names line and key.
    """
    check_dialogues(path)
    found: dict[Task, list[Question]] = {task: [] for task in tasks}
    for question in read_questions(path):
        if question.task in found:
            found[question.task].append(question)
    missing = [task for task, questions in found.items() if not questions]
    if missing:
        raise SourceError(f"{path}: no rows of {', '.join(missing)} found; add some or change --mix")
    return {task: Loaded(tuple(questions), {}) for task, questions in found.items()}


def read_questions(path: Path) -> list[Question]:
    """Return the question of each row of `path`, in order.

    Raises:
        RowError: when the file does not contain rows of the pool's schema; the message names line and key.
    """
    from rc1_lib.rows.schema import check_rows

    check_rows(read_rows(path), path)
    with open_text(path) as stream:
        return [_question(orjson.loads(line)) for line in filter(bytes.strip, stream)]


def check_dialogues(path: Path) -> None:
    """Reject a file whose first record is a question without a dialogue.

    Raises:
        SourceError: when it is; the message says where questions belong.
    """
    try:
        with open_text(path) as stream:
            record = orjson.loads(next(filter(bytes.strip, stream), b""))
    except (OSError, orjson.JSONDecodeError):
        return  # `read_rows` reports this
    if isinstance(record, dict) and "messages" not in record:
        keys = ", ".join(list(record)[:_SHOWN]) or "no keys"
        raise SourceError(
            f"{path}: its first record has no 'messages' (found: {keys}), so it is not a finished dialogue, as a "
            f".jsonl file as the source must hold. Questions with answers belong in a folder with a sub-folder for "
            f"each task, for example DIR/gsm8k/{path.name}; then give --sources DIR. See docs/how-to/own-source.md"
        )


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
