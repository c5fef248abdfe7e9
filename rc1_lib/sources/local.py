"""Reads the public data sets from a folder with one sub-folder per task, each with the data set's own files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rc1_lib.errors import SourceError
from rc1_lib.records import Task
from rc1_lib.sources.json_files import read_records
from rc1_lib.sources.loaded import Entry, Loaded, collect, require_questions
from rc1_lib.task_specs import task_spec

_SUFFIXES = (".json", ".jsonl")


def load_local(root: Path, tasks: Sequence[Task]) -> dict[Task, Loaded]:
    """The questions of each task from `root/<task>/*.json` and `*.jsonl`, in the order of file names.

    Raises:
        SourceError: a folder is missing or has no such file, a record is damaged (the message names file and line), or
            a task ends up without questions.
    """
    return {task: _load_task(root, task) for task in tasks}


def _load_task(root: Path, task: Task) -> Loaded:
    folder = root / task
    if not folder.is_dir():
        raise SourceError(
            f"{folder} is not a folder; expected {root} to hold a sub-folder '{task}' with the data set's .json or "
            ".jsonl files. Put them there, or leave the task out of the mix."
        )
    files = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
    if not files:
        raise SourceError(f"{folder} has no .json or .jsonl files; put the data set's own files there.")
    return require_questions(collect(_entries(files), task_spec(task).parse), str(folder))


def _entries(files: Sequence[Path]) -> Iterator[Entry]:
    stems = Counter(path.stem for path in files)
    for path in files:
        # Ids must be unique within a source, so `train.json` and `train.jsonl` in one folder keep their whole names.
        origin = path.stem if stems[path.stem] == 1 else path.name
        for record in read_records(path):
            yield Entry(record.value, record.index, origin, f"{path}, line {record.line}")
