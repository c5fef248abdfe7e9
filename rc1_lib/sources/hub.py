"""Read public data sets through Hugging Face `datasets`: by hub name, or from a local file or folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rc1_lib.errors import SourceError
from rc1_lib.records import SourceKey, Task
from rc1_lib.sources.columns import parser_of, require_rule
from rc1_lib.sources.loaded import Entry, Loaded, collect, require_questions
from rc1_lib.sources.local import check_all_read, data_in
from rc1_lib.task_specs import task_spec
from rc1_lib.workspace.input_files import form_of

SPLIT = "train"
_BUILDERS = {".json": "json", ".jsonl": "json", ".parquet": "parquet"}
"""Form of a file -> its builder in `datasets`."""


def load_hub(
    names: Mapping[Task, str],
    tasks: Sequence[Task],
    max_unusable: float = 0.0,
    cache_dir: Path | None = None,
    columns: Mapping[Task, Mapping[SourceKey, str]] = MappingProxyType({}),
) -> dict[Task, Loaded]:
    """Load the questions of each task from a split of its data set, `train` if its name says no other.

    Args:
        names: task -> hub name (`openai/gsm8k`; `owner/name:config:split` chooses a configuration other than the
            public one, and a split), or the path of a file (JSON, JSON lines, Parquet) or a folder of such files in
            the data set's own format.
        max_unusable: largest share of a task's records in which a key may be missing or of another type.
        columns: task -> key -> column of its data set, where these have other names than the task's keys.
        cache_dir: where `datasets` keeps downloaded and converted files; None for its default.

    Raises:
        SourceError: when a task has no name, its data set cannot be fetched or read, more than `max_unusable` of the
            records are unusable, a task ends up without questions, or mapped answers do not fit its rule.
    """
    return {task: _load_task(task, names, max_unusable, cache_dir, columns.get(task, {})) for task in tasks}


def _load_task(
    task: Task, names: Mapping[Task, str], max_unusable: float, cache_dir: Path | None, columns: Mapping[SourceKey, str]
) -> Loaded:
    if task not in names:
        raise SourceError(f"the task '{task}' has no data set; give one, such as openai/gsm8k for gsm8k.")
    name = names[task]
    split = _split(name)
    rows = _fetch(task, name, split, cache_dir)
    loaded = require_questions(collect(_entries(rows, name, split), parser_of(task, columns), max_unusable), name)
    return require_rule(task, loaded, name) if columns else loaded


def _entries(rows: Sequence[Mapping[str, Any]], name: str, split: str) -> Iterator[Entry]:
    for index, row in enumerate(rows):
        yield Entry(row, index, split, name, f"row {index} of split '{split}'")


def _split(name: str) -> str:
    return SPLIT if local_files(name) else [*name.split(":"), "", ""][2] or SPLIT


def _fetch(task: Task, name: str, split: str, cache_dir: Path | None) -> Sequence[Mapping[str, Any]]:
    # Imported here because it takes seconds, and the embedded and local sources do not need it.
    import datasets
    import httpx2
    from datasets.exceptions import DatasetsError

    path, files = Path(name), local_files(name)
    place: dict[str, Any] = (
        {"path": _BUILDERS.get(form_of(Path(files[0])), "json"), "data_files": files}
        if files
        else _hub_place(task, name)
    )
    try:
        rows: Sequence[Mapping[str, Any]] = datasets.load_dataset(
            **place, split=split, cache_dir=str(cache_dir) if cache_dir else None
        )
    except (OSError, ValueError, RuntimeError, ImportError, DatasetsError, httpx2.HTTPError) as error:
        # `datasets` raises these when there is no network, when a proxy refuses, for an unknown name or configuration,
        # a data set with a script, bad files, or zstd without its package.
        cause = error.__cause__ or error
        reason = " ".join(str(cause).split())[:300] or type(cause).__name__
        advice = (
            "Compare the file with the published data set."
            if path.exists()
            else "Check the name and the network, or use a folder with the data sets' files as the source instead."
        )
        raise SourceError(f"the {task} data set '{name}' could not be loaded ({reason}). {advice}") from error
    return rows


def local_files(name: str) -> list[str]:
    """Return the files that `name` refers to if it is a path; empty for a hub name."""
    path = Path(name)
    if path.is_dir():
        files = list(map(str, data_in(path)))
        if not files:
            raise SourceError(f"{path} has no .json, .jsonl or .parquet files; put the data set's files there.")
        check_all_read(path)
        return files
    if path.is_file():
        return [str(path)]
    if form_of(path) in _BUILDERS or path.is_absolute():
        raise SourceError(f"{path} does not exist; expected a data set's file or folder, or a hub name.")
    return []


def _hub_place(task: Task, name: str) -> dict[str, Any]:
    hub_name, config = [*name.split(":"), ""][:2]
    return {"path": hub_name, "name": config or task_spec(task).hub_config}
