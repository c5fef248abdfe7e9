"""How many questions of each task the shadow set takes."""

from __future__ import annotations

import random

from rc1_lib.config.run_config import RunConfig
from rc1_lib.numbers.sums import apportion
from rc1_lib.records import Task
from rc1_lib.task_specs import task_names


def shadow_counts(config: RunConfig) -> dict[Task, int]:
    """Return each task's number of shadow rows: the mix's share if stratified, else drawn with the mix as weights."""
    if config.shadow.stratify:
        return apportion(config.shadow.n, config.datasets)
    tasks = [task for task in task_names() if task in config.datasets]
    drawn = random.Random(config.shadow.seed).choices(
        tasks, [config.datasets[task] for task in tasks], k=config.shadow.n
    )
    return {task: drawn.count(task) for task in tasks}
