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
    """Start a child in a process group of its own; its output goes to `output`, or to the parent's when None.

    On Linux the kernel ends it when the parent dies. It has to be started from a thread that lives as long as it.
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
    """Ask a child to end, and end it and everything it started when it has not done so in time."""
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
    """Whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def descendants(pid: int) -> list[int]:
    """The processes below `pid`, children before grandchildren; empty where the system does not tell (no /proc)."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        parents.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found.extend(parents.get(one, []))
    return found[1:]


def end_with(parent: int) -> Callable[[], None]:
    """What a new process calls to be ended with its parent; does nothing on systems other than Linux."""

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
