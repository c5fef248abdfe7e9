"""Read public data sets from a folder with one sub-folder per task, which holds the data set's own files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from rc1_lib.errors import SourceError
from rc1_lib.records import SourceKey, Task
from rc1_lib.sources.columns import parser_of, require_rule
from rc1_lib.sources.loaded import Entry, Loaded, collect, require_questions
from rc1_lib.sources.record_files import read_records, read_table
from rc1_lib.workspace.input_files import form_of, is_hidden

_TABLE = ".parquet"
_FORMS = (".json", ".jsonl", _TABLE)
_OTHERS = (".csv", ".tsv", ".ndjson", ".arrow", ".bz2", ".xz", ".zip")
"""Forms and packings of data that are not read."""
_SAVED = ("dataset_dict.json", "state.json")
"""A folder with one of these and Arrow files was written by `save_to_disk`."""
_SHOWN = 3
"""Most files that a message lists."""


def load_local(
    root: Path,
    tasks: Sequence[Task],
    max_unusable: float = 0.0,
    columns: Mapping[Task, Mapping[SourceKey, str]] = MappingProxyType({}),
) -> dict[Task, Loaded]:
    """Load the questions of each task from the files of `root/<task>`, in the order of their names.

    Files are `.json`, `.jsonl` (both also with `.gz` or `.zst`) or `.parquet`; hidden ones are left out.

    Args:
        root: the folder.
        max_unusable: largest share of a task's records in which a key may be missing or of another type.
        columns: task -> key -> column of its files, where these have other names than the task's keys.

    Raises:
        SourceError: as `files_of_tasks`, and when a file is damaged, more than `max_unusable` of the records are
            unusable (the message names file, line and key), a task ends up without questions, or mapped answers do not
            fit its rule.
    """
    found = {}
    for task, files in files_of_tasks(root, tasks).items():
        mapped, place = columns.get(task, {}), str(root / task)
        loaded = require_questions(collect(_entries(files), parser_of(task, mapped), max_unusable), place)
        found[task] = require_rule(task, loaded, place) if mapped else loaded
    return found


def files_of_tasks(root: Path, tasks: Sequence[Task]) -> dict[Task, list[Path]]:
    """Return each task's files in `root/<task>`, in the order of their names.

    Raises:
        SourceError: when a folder was written by `save_to_disk`, tasks have no files, or data would not be read; names
            these tasks, files of another form, and files outside the tasks' sub-folders.
    """
    check_not_saved(root)
    found = {task: data_in(root / task) for task in tasks}
    if lacking := [task for task, files in found.items() if not files]:
        misplaced = ", ".join(path.name for path in data_in(root)[:_SHOWN])
        others = [path for task in lacking for path in _files_in(root / task)][:_SHOWN]
        present = [task for task in tasks if found[task]]
        mix = {1: "{%s: 1.0}", 2: "{%s: 0.5, %s: 0.5}"}.get(len(present), "") % tuple(present[:2])
        raise SourceError(
            f"{root}: expected a sub-folder with .json, .jsonl or .parquet files for each task of the mix (datasets); "
            f"found none for {', '.join(lacking)}. Put them there, for example in {root / lacking[0]}"
            + (f", or leave {'it' if len(lacking) == 1 else 'them'} out: --set 'datasets={mix}'" if mix else "")
            + (f". {', '.join(map(str, others))}: of another form, so not read" if others else "")
            + (f". {misplaced}: not in the sub-folder of a task, so not read" if misplaced else "")
            + ". docs/how-to/own-source.md shows the form of each task"
        )
    for task in tasks:
        check_all_read(root / task)
    return found


def check_all_read(folder: Path) -> None:
    """Reject data in or below a data set's folder that `data_in` leaves out, and names that cannot be hashed.

    Raises:
        SourceError: names the file, or the linked folder.
    """
    for path in sorted(folder.rglob("*")):
        linked = path.is_symlink() and path.is_dir()
        if is_hidden(path, folder) or not (linked or (path.is_file() and form_of(path) in (*_FORMS, *_OTHERS))):
            continue
        name = str(path.relative_to(folder))
        if name != name.encode(errors="ignore").decode():
            raise SourceError(f"{folder}: the file name {os.fsencode(name)!r} is not UTF-8; rename the file")
        if linked or path.parent != folder or form_of(path) not in _FORMS:
            raise SourceError(
                f"{path}: would not be read, only .json, .jsonl and .parquet files in {folder} itself are; convert it "
                f"or move it there, or take it out if it holds no records"
            )


def data_in(folder: Path) -> list[Path]:
    """Return the data files of a folder itself, sorted; none if there is no such folder.

    Raises:
        SourceError: when `save_to_disk` wrote it.
    """
    check_not_saved(folder)
    return list(filter(_is_data, _files_in(folder)))


def check_not_saved(folder: Path) -> None:
    """Reject a folder of `save_to_disk`: its JSON files describe the data, which are in Arrow files.

    Raises:
        SourceError: says how to write what RC1 reads.
    """
    if any((folder / name).is_file() for name in _SAVED) and any(folder.rglob("*.arrow")):
        raise SourceError(
            f"{folder}: was written by `save_to_disk` of the library datasets, expected .json, .jsonl or .parquet "
            f"files; write each split with datasets.load_from_disk(FOLDER)[SPLIT].to_parquet(FILE)"
        )


def _files_in(folder: Path) -> list[Path]:
    files = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in files if path.is_file() and not is_hidden(path, folder))


def _is_data(path: Path) -> bool:
    return form_of(path) in _FORMS and path.is_file()


def _entries(files: Sequence[Path]) -> Iterator[Entry]:
    stems = {path: path.name[: path.name.lower().rindex(form_of(path))] for path in files}
    files_of_stem = Counter(stems.values())
    for path, stem in stems.items():
        # Ids must be unique within a source, so `train.json` and `train.jsonl` in one folder keep their whole names.
        origin = stem if files_of_stem[stem] == 1 else path.name
        read, unit = (read_table, "row") if form_of(path) == _TABLE else (read_records, "line")
        for record in read(path):
            yield Entry(record.value, record.index, origin, str(path), f"{unit} {record.line}")
