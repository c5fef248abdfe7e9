"""Kill a piece of work at its n-th access to the file system."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable

_FORK = multiprocessing.get_context("fork")
_EVENTS = {"open", "os.rename", "os.symlink", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "shutil.rmtree"}


def run_and_kill_at(event: int, work: Callable[[], object]) -> bool:
    """Run `work` in a child that kills itself at its n-th event; return whether it finished before."""

    def child() -> None:
        count = 0

        def hook(name: str, args: object) -> None:
            nonlocal count
            if name in _EVENTS:
                count += 1
                if count == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work()
        os._exit(0)

    process = _FORK.Process(target=child)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0
