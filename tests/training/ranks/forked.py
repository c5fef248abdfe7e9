"""Forked workers with all imports done, for tests that are not about starting one."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener

import pytest

from rc1_lib.training.ranks.group import work
from rc1_lib.training.ranks.processes import StartedGroup
from tests.forks import Fork, Forks


@dataclass(frozen=True)
class _Process:
    """A forked worker with the interface of a started process."""

    fork: Fork

    @property
    def pid(self) -> int:
        return self.fork.pid

    def poll(self) -> int | None:
        return self.fork.poll()

    def kill(self) -> None:
        self.fork.kill()

    def wait(self, timeout: float = 800.0) -> int:
        return self.fork.wait(timeout)


def work_at(address: str, rank: str, size: str) -> None:
    """Work for the process that listens at the address."""
    work(Client(address), int(rank), int(size))


def fork_workers(monkeypatch: pytest.MonkeyPatch, forks: Forks) -> None:
    """Make new groups fork their workers."""

    def start(group: StartedGroup, rank: int, size: int) -> Connection:
        with Listener(family="AF_UNIX") as listener:
            fork = forks.start("tests.training.ranks.forked.work_at", listener.address, rank, size)
            group._processes.append(_Process(fork))  # type: ignore[arg-type]
            return listener.accept()

    monkeypatch.setattr(StartedGroup, "_start", start)
