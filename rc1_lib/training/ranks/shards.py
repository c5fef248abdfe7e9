"""Divide a step's episodes into shards, which one process works on one by one, or several processes at once.

Floating-point sums depend on the order of their terms, so a total computed in one process would differ in its last bits
from one added up over two processes. Therefore the shards are part of the configuration, each is a batch of its own,
and their results are combined in a fixed order. Then it makes no difference which process worked on which shard.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeVar

from rc1_lib.config.training import Training
from rc1_lib.errors import ConfigError
from rc1_lib.training.device import get_device
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.group import Group, launched_group

Done = TypeVar("Done")


class Shards:
    """How many shards there are, and which of them are this process's.

    Attributes:
        count: shards per step.
    """

    def __init__(self, count: int, group: Group | None = None) -> None:
        """Keep the number of shards. Without other processes, all are this process's."""
        assert count >= 1, f"{count} shards"
        self.count, self._group = count, group

    @property
    def alone(self) -> bool:
        """Whether there are no other processes."""
        return self._group is None

    @property
    def mine(self) -> list[int]:
        """The shards of this process."""
        if self._group is None:
            return list(range(self.count))
        return list(range(self._group.rank, self.count, self._group.size))

    def split(self, rows: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        """Split rows into shards of similar work: longest first, dealt back and forth (0 1 1 0).

        Args:
            rows: indices into `lengths`.
            lengths: of every row, in any unit.
        """
        shards: list[list[int]] = [[] for _ in range(self.count)]
        for place, row in enumerate(sorted(rows, key=lambda row: (-lengths[row], row))):
            lap, at = divmod(place, self.count)
            shards[self.count - 1 - at if lap % 2 else at].append(row)
        return shards

    def all_gather(self, mine: Mapping[int, Done]) -> list[Done]:
        """Return the results of all shards in order, given those of this process's own."""
        assert sorted(mine) == self.mine, f"found results of shards {sorted(mine)}, expected {self.mine}"
        if self._group is None:
            return [mine[shard] for shard in range(self.count)]
        with timed(Section.OTHERS):
            found = self._group.all_gather(mine)
        return [found[shard] for shard in range(self.count)]


ONE_SHARD = Shards(1)
"""A single shard: no division."""


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
