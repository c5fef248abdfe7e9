"""The processes that share the work of one engine: this one, and its followers.

Starting one takes seconds (it imports torch), so a crew that an engine has done with waits for the next one.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from rc1_lib.training.ranks.follower import BEGIN, DONE
from rc1_lib.training.ranks.link import LeaderLink, LostError, receive, send

_MODULE = "rc1_lib.training.ranks.follower"
_PATIENCE_S = 30
_waiting: dict[tuple[int, int], Crew] = {}
"""Crews that have nothing to do, by the process that they belong to (a fork has none) and their size."""


class Crew:
    """Followers, and the lines to them.

    Attributes:
        link: this process's end of the lines.
    """

    def __init__(self, size: int) -> None:
        """Starts `size` - 1 processes; they follow until this one ends or `close`."""
        assert size > 1, f"a crew of {size}"
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the followers are
        self._lines: list[Connection] = []
        self._processes = [self._start(rank, size) for rank in range(1, size)]
        self.link = LeaderLink(self._lines)

    @classmethod
    def take(cls, size: int) -> Crew:
        """A crew of this size that has nothing to do; give it back, or close it."""
        waiting = _waiting.pop((os.getpid(), size), None)
        return waiting if waiting is not None and waiting.whole else cls(size)

    def give_back(self) -> None:
        """Have it wait for the next that takes one."""
        former = _waiting.pop((os.getpid(), self.link.size), None)
        if former is not None:
            former.close()
        _waiting[os.getpid(), self.link.size] = self

    @property
    def whole(self) -> bool:
        """Whether all followers are alive."""
        return bool(self._processes) and all(process.poll() is None for process in self._processes)

    @contextmanager
    def beginning(self, place: str, setup: Any) -> Iterator[None]:
        """Inside, every follower makes what it is to work with; make one's own meanwhile.

        Args:
            place: `module:Class`; the class has `following(link, setup)`.
            setup: what it is made of.

        Raises:
            LostError: when a follower is gone or refuses; the crew is closed then, as after any other error inside.
            FollowerError: when one has failed.
        """
        with self._guarded():
            self._tell(BEGIN, (place, setup))
            yield
            self._hear()

    @contextmanager
    def doing(self, name: str, arguments: tuple[Any, ...]) -> Iterator[None]:
        """Inside, every follower does what its method `name` does; do the same meanwhile.

        Raises:
            LostError: when a follower is gone or refuses; the crew is closed then, as after any other error inside.
            FollowerError: when one has failed.
        """
        with self._guarded():
            self._tell(name, arguments)
            yield
            self._hear()

    def close(self) -> None:
        """End the followers; whatever they were at is dropped."""
        for line in self._lines:
            line.close()
        for process in self._processes:
            process.kill()
            process.wait()
        self._lines.clear()
        self._processes.clear()
        self._said.close()

    def _start(self, rank: int, size: int) -> subprocess.Popen[bytes]:
        mine, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, str(theirs.fileno()), str(rank), str(size)],
                stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said, pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip
        self._lines.append(mine)
        return process

    def _tell(self, name: str, arguments: tuple[Any, ...]) -> None:
        if not self._processes:
            raise LostError("the processes that shared this work were ended; set the engine up again")
        for line in self._lines:
            send(line, (name, arguments))

    def _hear(self) -> None:
        for line in self._lines:
            said = receive(line)
            assert said == DONE, f"a follower said {said!r}, expected that it is done"

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, ConnectionError) as error:
            sentence = self._loss()
            self.close()
            raise LostError(sentence) from error
        except BaseException:
            # Where the followers stand now is not known, so nothing more can be done with them.
            self.close()
            raise

    def _loss(self) -> str:
        """Which follower is gone and why, as far as it can be known."""
        gone = [(rank, process) for rank, process in enumerate(self._processes, start=2) if process.poll() is not None]
        for rank, process in gone or enumerate(self._processes, start=2):
            try:
                code = process.wait(timeout=_PATIENCE_S)  # its line closes a moment before it is gone
            except subprocess.TimeoutExpired:
                continue
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}{self._last_words()}"
            return (
                f"process {rank} of {self.link.size} {how}; the step it was part of is lost, the checkpoints are not: "
                f"run the same command again and it goes on from the newest one"
            )
        return "the line to one of the processes that share this work is broken; run the same command again"

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f" ({lines[-1].strip()})" if lines else ""


@atexit.register
def _end_waiting() -> None:
    for (owner, _), crew in _waiting.items():
        if owner == os.getpid():
            crew.close()
