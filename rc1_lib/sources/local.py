"""Reads the public data sets from a folder with one sub-folder per task, each with the data set's own files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rc1_lib.errors import SourceError
from rc1_lib.records import Task
from rc1_lib.sources.loaded import Entry, Loaded, collect, require_questions
from rc1_lib.sources.record_files import read_records, read_table
from rc1_lib.task_specs import task_spec
from rc1_lib.workspace.input_files import form_of

_TABLE = ".parquet"
_FORMS = (".json", ".jsonl", _TABLE)


def load_local(root: Path, tasks: Sequence[Task], max_unusable: float = 0.0) -> dict[Task, Loaded]:
    """The questions of each task from the files of `root/<task>`, in the order of their names.

    Files are `.json`, `.jsonl` (both also with `.gz` or `.zst`) or `.parquet`.

    Args:
        root: the folder.
        tasks: the tasks to load.
        max_unusable: largest share of a task's records in which a key may be missing or of another type.

    Raises:
        SourceError: a folder is missing or has no such file, a file is damaged, more records than that are unusable
            (the message names file, line and key), or a task ends up without questions.
    """
    return {task: _load_task(root, task, max_unusable) for task in tasks}


def data_files(folder: Path) -> list[Path]:
    """The files of data sets below a folder, at any depth, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if _is_data(path))


def _load_task(root: Path, task: Task, max_unusable: float) -> Loaded:
    folder = root / task
    if not folder.is_dir():
        raise SourceError(
            f"{folder} is not a folder; expected {root} to hold a sub-folder '{task}' with the data set's .json, "
            ".jsonl or .parquet files. Put them there, or leave the task out of the mix."
        )
    files = sorted(filter(_is_data, folder.iterdir()))
    if not files:
        raise SourceError(f"{folder} has no .json, .jsonl or .parquet files; put the data set's own files there.")
    return require_questions(collect(_entries(files), task_spec(task).parse, max_unusable), str(folder))


def _is_data(path: Path) -> bool:
    return form_of(path) in _FORMS and path.is_file()


def _entries(files: Sequence[Path]) -> Iterator[Entry]:
    stems = {path: path.name[: path.name.lower().rindex(form_of(path))] for path in files}
    times = Counter(stems.values())
    for path, stem in stems.items():
        # Ids must be unique within a source, so `train.json` and `train.jsonl` in one folder keep their whole names.
        origin = stem if times[stem] == 1 else path.name
        read, unit = (read_table, "row") if form_of(path) == _TABLE else (read_records, "line")
        for record in read(path):
            yield Entry(record.value, record.index, origin, str(path), f"{unit} {record.line}")
