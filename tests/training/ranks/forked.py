"""Followers that are forked with everything imported, where a test is not about how one starts."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener

import pytest

from rc1_lib.training.ranks.follower import follow
from rc1_lib.training.ranks.started import StartedCrew
from tests.forks import Fork, Forks


@dataclass(frozen=True)
class _Process:
    """A forked follower, as a crew sees a process that it has started."""

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


def follow_at(address: str, rank: str, size: str) -> None:
    """As a process: follow whoever listens there."""
    try:
        follow(Client(address), int(rank), int(size))
    except (EOFError, ConnectionError):
        return


def fork_followers(monkeypatch: pytest.MonkeyPatch, forks: Forks) -> None:
    """Crews that are started from now on have such followers."""

    def start(crew: StartedCrew, rank: int, size: int) -> Connection:
        with Listener(family="AF_UNIX") as listener:
            fork = forks.start("tests.training.ranks.forked.follow_at", listener.address, rank, size)
            crew._processes.append(_Process(fork))  # type: ignore[arg-type]
            return listener.accept()

    monkeypatch.setattr(StartedCrew, "_start", start)
