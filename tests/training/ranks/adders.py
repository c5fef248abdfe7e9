"""What the processes of a group do together in place of an engine's steps. Some of it goes wrong, in workers only."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any, TypeVar

from rc1_lib.training.ranks.group import Group, group_of
from rc1_lib.training.ranks.shards import Shards

Result = TypeVar("Result")


def add(group: Group | None, numbers: list[float]) -> float:
    shards, total = Shards(4, group), 0.0
    parts = shards.split(range(len(numbers)), [1] * len(numbers))
    for found in shards.all_gather({at: sum(numbers[row] for row in parts[at]) for at in shards.mine}):
        total += found
    return total


def process(group: Group) -> list[int]:
    """Return the process ids by rank."""
    return Shards(group.size, group).all_gather({group.rank: os.getpid()})


def die(group: Group) -> list[int]:
    if group.rank:
        os.kill(os.getpid(), signal.SIGKILL)
    return process(group)


def stop(group: Group) -> list[int]:
    if group.rank:
        os.kill(os.getpid(), signal.SIGSTOP)
    return process(group)


def follow(group: Group) -> None:
    """Do in a worker what the first process names."""
    while True:
        name, arguments = group.next_call()
        globals()[name](group, *arguments)


def run_in_all(group: Group, function: Callable[..., Result], *arguments: Any) -> Result:
    """Call a function of this module in all processes and return its result here."""
    with group.calling(function.__name__, *arguments):
        return function(group, *arguments)


def lead() -> None:
    """Start a group, print its process ids, and wait forever."""
    from tests.training.ranks import adders  # under the name that workers import; here it is __main__

    print(*run_in_all(group_of(3, adders.follow), adders.process), flush=True)
    signal.pause()


if __name__ == "__main__":
    lead()
