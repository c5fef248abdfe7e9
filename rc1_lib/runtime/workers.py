"""Worker processes.

They are spawned, not forked: the caller may be a thread of a running Prefect engine.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from rc1_lib.task_specs import TaskSpec, added, register

_PR_SET_PDEATHSIG = 1


def worker_processes(count: int) -> ProcessPoolExecutor:
    """Worker processes that have this one's tasks, ignore Ctrl-C, and end with it even if it is killed.

    A terminal sends Ctrl-C to every process: if a worker died of it, this process would wait forever.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_start, initargs=(added(),))


def _start(tasks: Sequence[TaskSpec]) -> None:
    register(*tasks)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
