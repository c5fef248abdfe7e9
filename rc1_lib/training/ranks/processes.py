"""How many processes share the work of a step."""

from __future__ import annotations

import os

from rc1_lib.config_training import Training
from rc1_lib.training.device import get_device


def processes_of(training: Training) -> int:
    """How many processes share the work of a step; only on a CPU are there several."""
    if get_device().type != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(training.shards, training.processes or cores)
