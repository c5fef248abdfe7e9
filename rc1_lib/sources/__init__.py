"""Where questions come from: the public data sets (local files or the hub), JSONL rows, or the embedded worlds."""

from __future__ import annotations

from pathlib import Path

from rc1_lib.artifacts import Workspace
from rc1_lib.config import RunConfig
from rc1_lib.pool.plan import apportion, shadow_counts
from rc1_lib.records import Question, Task
from rc1_lib.sources.embedded import generate
from rc1_lib.sources.hub import load_hub
from rc1_lib.sources.local import load_local

_SPARE = 1.2
"""Embedded questions generated beyond those needed, so that a few may be left out as too long or too alike."""


def load_questions(
    config: RunConfig, workspace: Workspace
) -> tuple[dict[Task, list[Question]], dict[str, dict[str, int]]]:
    """All questions of the configured source, by task, and how many records were skipped for which reason.

    Raises:
        SourceError: when the source is missing, damaged or out of reach.
    """
    tasks = list(config.datasets)
    if config.sources.use == "embedded":
        return _embedded(config), {}
    if config.sources.use == "hub":
        names: dict[Task, str] = {task: getattr(config.sources.hub, task) for task in tasks}
        loaded = load_hub(names, tasks)
    else:
        root = Path(config.sources.use)
        loaded = load_local(root if root.is_absolute() or root.exists() else workspace.find(config.sources.use), tasks)
    questions = {task: list(part.questions) for task, part in loaded.items()}
    return questions, {task: dict(part.skipped) for task, part in loaded.items()}


def _embedded(config: RunConfig) -> dict[Task, list[Question]]:
    pool, shadow = apportion(config.pool.n, config.datasets), shadow_counts(config)
    return {
        task: generate(
            task, round(_SPARE * (pool[task] + shadow[task])) + 20, config.pool.seed, config.sources.chinese_share
        )
        for task in config.datasets
    }
