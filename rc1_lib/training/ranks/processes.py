"""How many processes share the work of a step, and which they are."""

from __future__ import annotations

import os

from rc1_lib.config.training import Training
from rc1_lib.errors import ConfigError
from rc1_lib.training.device import get_device
from rc1_lib.training.ranks.launched import launched_group
from rc1_lib.training.ranks.started import StartedGroup
from rc1_lib.training.ranks.worker_group import WorkerGroup


def processes_of(training: Training) -> int:
    """How many processes share the work of a step: those that a launcher started, else several only on a CPU.

    Raises:
        ConfigError: when a launcher started a number of them that the shards cannot be dealt to evenly.
    """
    group = launched_group()
    if group is not None:
        return _evenly(group.link.size, training.shards)
    if get_device().type != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(training.shards, training.processes or cores)


def group_of(size: int) -> WorkerGroup:
    """So many processes, this one included, that have nothing to do; give them back, or close them."""
    return launched_group() or StartedGroup.take(size)


def on_one_device(processes: int) -> int:
    """How many of them share a device's memory: all a CPU's, and each has a GPU of its own."""
    return processes if get_device().type == "cpu" else 1


def gpus_of(training: Training) -> int:
    """How many GPUs (or MPS) the processes that share the work hold, one each; 0 on a CPU.

    Raises:
        ConfigError: see `processes_of`.
    """
    return 0 if get_device().type == "cpu" else processes_of(training)


def _evenly(processes: int, shards: int) -> int:
    if shards % processes:
        raise ConfigError(
            f"training.shards: found {shards}, but the launcher started {processes} processes, expected a multiple of "
            f"them; start as many as divide it, or set training.shards={processes}, which is another run with a ticket "
            f"of its own"
        )
    return processes
