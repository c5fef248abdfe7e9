"""How many processes share a step, and which: those of a launcher, or workers that this process starts itself."""

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
"""Idle groups, by owner process (a fork does not inherit them) and size."""


def processes_of(training: Training) -> int:
    """Return how many processes share a step: those of a launcher, or else several on a CPU and one on a GPU.

    Raises:
        ConfigError: if the shards cannot be divided evenly among a launcher's processes.
    """
    group = launched_group()
    if group is not None:
        return _evenly(group.link.size, training.shards)
    if get_device().type != "cpu":
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(training.shards, training.processes or cores)


def group_of(size: int) -> WorkerGroup:
    """Return an idle group of `size` processes, including this one. Release or close it after use."""
    return launched_group() or StartedGroup.take(size)


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


class StartedGroup(WorkerGroup):
    """Workers that this process started itself, each connected by a pair of sockets. They end with this process.

    Starting one takes seconds, because it imports torch. So an idle group is kept for the next engine.
    """

    to_go_on = "set the engine up again"

    def __init__(self, size: int) -> None:
        """Start `size` - 1 processes. They run until this process ends, or `close` is called."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the workers run
        self._processes: list[subprocess.Popen[bytes]] = []
        super().__init__([self._start(rank, size) for rank in range(1, size)])

    @classmethod
    def take(cls, size: int) -> StartedGroup:
        """Return an idle group of this size, or start one. Release or close it after use."""
        waiting = _waiting.pop((os.getpid(), size), None)
        return waiting if waiting is not None and waiting.whole else cls(size)

    def release(self) -> None:
        """Keep the group for the next caller of `take`."""
        former = _waiting.pop((os.getpid(), self.link.size), None)
        if former is not None:
            former.close()
        _waiting[os.getpid(), self.link.size] = self

    @property
    def whole(self) -> bool:
        """Whether all workers are alive."""
        return super().whole and all(process.poll() is None for process in self._processes)

    def close(self) -> None:
        """Kill the workers. Unfinished work is lost."""
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
            code = self._processes[process - 2].wait(timeout=_PATIENCE_S)  # it ends just after its channel closes
        except subprocess.TimeoutExpired:
            return LostError(f"the channel to {who} broke, but the process has not ended; run the same command again")
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


if __name__ == "__main__":  # a worker: file descriptor of its channel, rank, group size
    descriptor, rank, size = map(int, sys.argv[1:])
    work(Connection(descriptor), rank, size)
