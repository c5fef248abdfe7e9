"""An adder for groups of processes, in place of an engine. It fails in the way that a test wants.

It imports torch only if needed: the import takes a second in each new process.
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
from collections.abc import Callable
from typing import ClassVar, ParamSpec, Self, TypeVar
from weakref import WeakSet

from rc1_lib.errors import RC1Error
from rc1_lib.training.ranks.group import Link, WorkerGroup
from rc1_lib.training.ranks.shards import Shards

P = ParamSpec("P")
Result = TypeVar("Result")


class Adder:
    """Adds numbers by shard, or fails in the requested way, in workers only."""

    alive: ClassVar[WeakSet[Adder]] = WeakSet()

    def __init__(self, link: Link, shards: int) -> None:
        self.link, self.shards = link, Shards(shards, link)
        self.alive_before, self.itself = len(self.alive), self  # a cycle like an engine's: only gc frees it
        self.alive.add(self)

    @classmethod
    def as_worker(cls, link: Link, setup: int) -> Self:
        return cls(link, setup)

    def add(self, numbers: list[float]) -> float:
        parts = self.shards.split(range(len(numbers)), [1] * len(numbers))
        total = 0.0
        for found in self.shards.all_gather({at: sum(numbers[row] for row in parts[at]) for at in self.shards.mine}):
            total += found
        return total

    def process(self) -> list[int]:
        """Return the process ids by rank."""
        found = self.shards.all_gather({at: os.getpid() for at in self.shards.mine})
        return found[: self.link.size]

    def others(self) -> list[int]:
        """Return by rank how many adders were alive when this one was made."""
        return self.shards.all_gather({at: self.alive_before for at in self.shards.mine})[: self.link.size]

    def die(self) -> list[int]:
        if self.link.rank:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.process()

    def leave(self) -> list[int]:
        if self.link.rank:
            os.write(2, b"out of patience\n")
            os._exit(7)
        return self.process()

    def refuse(self) -> None:
        if self.link.rank:
            raise RC1Error("base: not found")

    def fill_memory(self) -> list[int]:
        if self.link.rank:
            import torch

            torch.empty(2**58)
        return self.process()

    def fill_disk(self) -> list[int]:
        if self.link.rank:
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
            with tempfile.TemporaryFile() as file:
                file.write(bytes(100))
                file.flush()
        return self.process()

    def fail(self) -> list[int]:
        if self.link.rank:
            raise KeyError("lost")
        return self.process()


def adder_of(group: WorkerGroup, shards: int) -> Adder:
    """Return this process's adder after those of the workers were made."""
    with group.constructing(Adder.as_worker, shards):
        return Adder(group.link, shards)


def run_in_all(group: WorkerGroup, method: Callable[P, Result], *arguments: P.args, **named: P.kwargs) -> Result:
    """Run an adder's method in all processes and return its result."""
    with group.calling(method, *arguments, **named):
        return method(*arguments, **named)


def lead() -> None:
    """Start a group, print its process ids, and wait forever."""
    from rc1_lib.training.ranks.processes import StartedGroup
    from tests.training.ranks import adders  # under the name that workers import; here it is __main__

    group = StartedGroup(3)
    print(*run_in_all(group, adders.adder_of(group, 3).process), flush=True)
    signal.pause()


if __name__ == "__main__":
    lead()
