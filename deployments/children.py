"""Child processes that end with their parent, even when the parent is killed with -9."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def start(command: Sequence[str], environment: Mapping[str, str], output: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """Start a child in its own process group; its output goes to `output`, or if that is None, to the parent's.

    On Linux the kernel kills it when the parent dies. The thread that starts it must live as long as the child.
    """
    return subprocess.Popen(
        command,
        env=dict(environment),
        stdout=output,
        stderr=subprocess.STDOUT if output else None,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=end_with(os.getpid()),
    )


def stop(child: subprocess.Popen[bytes], patience_s: float = 15.0) -> None:
    """Ask a child to end; kill it if it does not end in time, and then all processes that it started."""
    family = descendants(child.pid)
    if child.poll() is None:
        child.terminate()
    try:
        child.wait(patience_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    for pid in family:
        _kill(pid)


def alive(pid: int) -> bool:
    """Return whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def descendants(pid: int) -> list[int]:
    """Return the processes below `pid`, children before grandchildren; empty on a system without /proc."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found.extend(parents.get(one, []))
    return found[1:]


def end_with(parent: int) -> Callable[[], None]:
    """Return a function that a new process calls to be killed with its parent; it does nothing except on Linux."""

    def ask_the_kernel() -> None:
        if _LIBC is None:
            return
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died between fork and prctl
            os._exit(1)

    return ask_the_kernel


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
