"""Where questions come from: data sets (local files or the hub), JSONL rows, the embedded generator."""

from __future__ import annotations

import random
from itertools import chain
from pathlib import Path

from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.source_path import is_rows, source_path
from rc1_lib.errors import SourceError
from rc1_lib.numbers.sums import apportion
from rc1_lib.records import Question, Task
from rc1_lib.sources.embedded import generate
from rc1_lib.sources.hub import load_hub, local_files
from rc1_lib.sources.local import files_of_tasks, load_local
from rc1_lib.sources.rows import load_rows, read_questions
from rc1_lib.task_specs import task_names
from rc1_lib.workspace.artifacts import Workspace, sha256_files, sha256_json
from rc1_lib.workspace.file_hashes import sha256_known

_SPARE = 1.2
"""Factor of embedded questions to generate per row, so that too long or too similar ones can be left out."""

MAX_UNUSABLE = 0.01
"""Share of a task's public records that may lack a key or have one of another type; they are left out and counted."""


def load_questions(
    config: RunConfig, workspace: Workspace
) -> tuple[dict[Task, list[Question]], dict[str, dict[str, int]]]:
    """Return all questions of the configured source by task, and how many records were skipped for which reason.

    Raises:
        SourceError: when the source is missing, damaged or unreachable.
    """
    tasks = list(config.datasets)
    if config.sources.use == "embedded":
        _check_no_columns(config, "the embedded worlds")
        return _embedded(config), {}
    if config.sources.use == "hub":
        loaded = load_hub(config.sources.hub, tasks, MAX_UNUSABLE, columns=config.sources.columns)
    else:
        place, columns = source_path(config.sources.use, workspace), config.sources.columns
        if is_rows(place):
            _check_no_columns(config, f"{place}, finished rows")
        loaded = load_rows(place, tasks) if is_rows(place) else load_local(place, tasks, MAX_UNUSABLE, columns)
    questions = {task: list(part.questions) for task, part in loaded.items()}
    return questions, {task: dict(part.skipped) for task, part in loaded.items()}


def _check_no_columns(config: RunConfig, source: str) -> None:
    if mapped := [task for task, columns in config.sources.columns.items() if columns]:
        raise SourceError(
            f"sources.columns.{mapped[0]}: found a mapping, but the source is {source}, which has nothing to map; "
            f"remove it, or name a folder or a data set of the hub"
        )


def held_out_elsewhere(config: RunConfig, workspace: Workspace) -> list[Question]:
    """Return the questions of another shadow set that the pool leaves out too (`pool.hold_out`).

    Raises:
        RowError: when that file does not contain rows.
    """
    return [] if config.pool.hold_out is None else read_questions(workspace.find(config.pool.hold_out))


def sources_sha256(config: RunConfig, workspace: Workspace) -> str:
    """Return the SHA-256 of the source's files; "embedded" or "hub" for a source without files here.

    Raises:
        SourceError: when the source does not exist, is a file that does not contain rows, or is a folder without files
            for a task of the mix, or with data that are not read.
    """
    use = config.sources.use
    if use == "embedded":
        return use
    if use == "hub":
        files = {task: map(Path, local_files(name)) for task, name in config.sources.hub.items()}
        here = {task: found for task, some in files.items() if (found := list(map(sha256_known, some)))}
        return sha256_json(here) if here else use
    place = source_path(use, workspace)
    if not place.exists():
        raise SourceError(f"{place}: source not found; sources.use takes embedded, hub, a folder or a .jsonl file")
    if place.is_file() and not is_rows(place):
        raise SourceError(f"{place}: is a file; expected a folder of data sets, or finished rows in a .jsonl file")
    if place.is_file():
        return sha256_known(place)
    # Only what is read: the folder may be a workspace's, to which RC1 adds files.
    return sha256_files(place, chain.from_iterable(files_of_tasks(place, list(config.datasets)).values()))


def _embedded(config: RunConfig) -> dict[Task, list[Question]]:
    pool, shadow = apportion(config.pool.n, config.datasets), shadow_counts(config)
    counts = {task: round(_SPARE * (pool[task] + shadow[task])) + 20 for task in config.datasets}
    return {task: generate(task, count, config.pool.seed) for task, count in counts.items()}


def shadow_counts(config: RunConfig) -> dict[Task, int]:
    """Return each task's number of shadow rows: the mix's share if stratified, else drawn with the mix as weights."""
    if config.shadow.stratify:
        return apportion(config.shadow.n, config.datasets)
    tasks = [task for task in task_names() if task in config.datasets]
    drawn = random.Random(config.shadow.seed).choices(
        tasks, [config.datasets[task] for task in tasks], k=config.shadow.n
    )
    return {task: drawn.count(task) for task in tasks}
