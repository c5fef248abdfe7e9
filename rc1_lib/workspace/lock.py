"""A lock for one run at a time per workspace; the error names the run that holds it and since when."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import Workspace, now

LOCK = "reports/rc1/.run.lock"


@contextmanager
def holding(workspace: Workspace, what: str) -> Iterator[None]:
    """Hold a workspace's lock. The kernel releases it when the process ends, however it ends.

    Args:
        workspace: the workspace.
        what: the work in progress, in words.

    Raises:
        RC1Error: while another run holds it.
    """
    path = workspace.path(LOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    except OSError as error:
        raise RC1Error(f"{path}: cannot be written ({error.strerror}), expected a file; move it away") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            raise RC1Error(f"{workspace.root}: locked by {holder}; wait for it to finish, or stop it") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{what} (process {os.getpid()}, since {now()})\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def check_free(workspace: Workspace) -> None:
    """Check whether a run could begin now. A run that begins has to hold the lock itself.

    Raises:
        RC1Error: while another run holds it.
    """
    if workspace.path(LOCK).exists():
        with holding(workspace, "a look"):
            pass
