"""How many questions of each task the shadow set takes."""

from __future__ import annotations

import random

from rc1_lib.apportion import apportion
from rc1_lib.config import RunConfig
from rc1_lib.records import TASKS, Task


def shadow_counts(config: RunConfig) -> dict[Task, int]:
    """How many shadow rows each task gets: in the shares of the mix when stratified, else one draw over all tasks."""
    if config.shadow.stratify:
        return apportion(config.shadow.n, config.datasets)
    drawn = random.Random(config.shadow.seed).choices(
        TASKS, [config.datasets.get(task, 0.0) for task in TASKS], k=config.shadow.n
    )
    return {task: drawn.count(task) for task in TASKS if task in config.datasets}
