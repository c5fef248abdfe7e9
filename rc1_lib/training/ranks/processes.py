"""How many processes share the work of a step, and which: a launcher's, or those that this process starts itself."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from rc1_lib.config.training import Training
from rc1_lib.errors import ConfigError
from rc1_lib.training.device import get_device
from rc1_lib.training.ranks.group import GO_ON, KILLED, LostError, WorkerGroup, work
from rc1_lib.training.ranks.launched import launched_group
from rc1_lib.training.resource_errors import MEMORY

_PATIENCE_S = 30
_waiting: dict[tuple[int, int], StartedGroup] = {}
"""Groups that no engine uses, by the process that they belong to (a fork has none) and their size."""


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


class StartedGroup(WorkerGroup):
    """Workers that this process has started itself, each at the end of a pair of sockets, and that end with it.

    Starting one takes seconds (it imports torch), so a group that an engine no longer needs waits for the next one.
    """

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
                [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), str(rank), str(size)],
                stdin=subprocess.DEVNULL, stdout=self._said, stderr=self._said, pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip
        self._processes.append(process)
        return mine

    def _loss(self, process: int) -> LostError:
        who = f"process {process} of {self.link.size}"
        try:
            code = self._processes[process - 2].wait(timeout=_PATIENCE_S)  # its channel closes a moment before it ends
        except subprocess.TimeoutExpired:
            return LostError(f"the channel to {who} is broken; run the same command again")
        if code == -signal.SIGKILL and self._killed_for_memory():
            return LostError(f"{who} was killed by signal {-code}, and {KILLED}", MEMORY)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}{self._last_words()}"
        return LostError(f"{who} {how}; {GO_ON}")

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f" ({lines[-1].strip()})" if lines else ""


@atexit.register
def _end_waiting() -> None:
    for (owner, _), group in _waiting.items():
        if owner == os.getpid():
            group.close()


if __name__ == "__main__":  # a worker: the descriptor of its channel, its rank, the size of its group
    descriptor, rank, size = map(int, sys.argv[1:])
    work(Connection(descriptor), rank, size)
