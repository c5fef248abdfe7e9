"""How many processes share a step: those of a launcher, or workers that this process starts itself."""

from __future__ import annotations

import os

from rc1_lib.config.training import Training
from rc1_lib.errors import ConfigError
from rc1_lib.training.device import get_device
from rc1_lib.training.ranks.group import launched_group


def processes_of(training: Training) -> int:
    """Return how many processes share a step: those of a launcher, or else several on a CPU and one on a GPU.

    Raises:
        ConfigError: if the shards cannot be divided evenly among a launcher's processes.
    """
    group = launched_group()
    if group is not None:
        return _evenly(group.size, training.shards)
    if get_device().type != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(training.shards, training.processes or cores)


def on_one_device(processes: int) -> int:
    """Return how many of the processes share a device's memory: all on a CPU, one per GPU."""
    return processes if get_device().type == "cpu" else 1


def _evenly(processes: int, shards: int) -> int:
    if shards % processes:
        raise ConfigError(
            f"training.shards: found {shards}, expected a multiple of {processes}, the number of processes that the "
            f"launcher started; start a number that divides {shards}, or set training.shards={processes}, which makes "
            "another run that needs its own ticket"
        )
    return processes
