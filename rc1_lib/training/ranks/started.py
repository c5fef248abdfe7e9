"""Workers that this process has started itself, and that end with it.

Starting one takes seconds (it imports torch), so a group that an engine no longer needs waits for the next one.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from rc1_lib.training.ranks.channel import LostError
from rc1_lib.training.ranks.worker_group import GO_ON, KILLED, WorkerGroup
from rc1_lib.training.resource_errors import MEMORY

_MODULE = "rc1_lib.training.ranks.worker"
_PATIENCE_S = 30
_waiting: dict[tuple[int, int], StartedGroup] = {}
"""Groups that no engine uses, by the process that they belong to (a fork has none) and their size."""


class StartedGroup(WorkerGroup):
    """Processes next to this one, each at the end of a pair of sockets."""

    to_go_on = "set the engine up again"

    def __init__(self, size: int) -> None:
        """Starts `size` - 1 processes; they work until this one ends or `close`."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the workers are
        self._processes: list[subprocess.Popen[bytes]] = []
        super().__init__([self._start(rank, size) for rank in range(1, size)])

    @classmethod
    def take(cls, size: int) -> StartedGroup:
        """A group of this size that no engine uses; release or close it."""
        waiting = _waiting.pop((os.getpid(), size), None)
        return waiting if waiting is not None and waiting.whole else cls(size)

    def release(self) -> None:
        """Have it wait for the next that takes one."""
        former = _waiting.pop((os.getpid(), self.link.size), None)
        if former is not None:
            former.close()
        _waiting[os.getpid(), self.link.size] = self

    @property
    def whole(self) -> bool:
        """Whether all workers are alive."""
        return super().whole and all(process.poll() is None for process in self._processes)

    def close(self) -> None:
        """End the workers; whatever they were at is dropped."""
        super().close()
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()
        self._said.close()

    def _start(self, rank: int, size: int) -> Connection:
        mine, theirs = Pipe()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", _MODULE, str(theirs.fileno()), str(rank), str(size)],
                stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said, pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip
        self._processes.append(process)
        return mine

    def _loss(self, error: Exception) -> LostError:
        gone = [(rank, process) for rank, process in enumerate(self._processes, start=2) if process.poll() is not None]
        for rank, process in gone or enumerate(self._processes, start=2):
            try:
                code = process.wait(timeout=_PATIENCE_S)  # its channel closes a moment before it is gone
            except subprocess.TimeoutExpired:
                continue
            who = f"process {rank} of {self.link.size}"
            if code == -signal.SIGKILL and self._killed_for_memory():
                return LostError(f"{who} was killed by signal {-code}, and {KILLED}", MEMORY)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}{self._last_words()}"
            return LostError(f"{who} {how}; {GO_ON}")
        return LostError(
            "the channel to one of the processes that share this work is broken; run the same command again"
        )

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f" ({lines[-1].strip()})" if lines else ""


@atexit.register
def _end_waiting() -> None:
    for (owner, _), group in _waiting.items():
        if owner == os.getpid():
            group.close()
