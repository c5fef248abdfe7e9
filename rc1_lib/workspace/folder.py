"""The folder of a workspace: what is laid out in it, the room on its disk, and the lock of the run that works in it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import PROJECT_ROOT, Workspace, atomic_write, make_folder, now

PARTS = {
    "configurations": "configs/*.yaml",
    "judge instructions": "configs/judge/*.yaml",
    "templates": "templates/*/*.json",
    "the embedded base": "models/embedded/*",
}
"""What is laid out -> its files, relative to the project; `setup.py` has the same."""


def shipped() -> dict[str, list[str]]:
    """What is laid out -> its files, relative to the project."""
    return {
        part: sorted(path.relative_to(PROJECT_ROOT).as_posix() for path in PROJECT_ROOT.glob(pattern))
        for part, pattern in PARTS.items()
    }


def lay_out(folder: Path) -> dict[str, list[str]]:
    """Copy what is shipped into a folder, which is made where it is missing; returns what was copied.

    Raises:
        RC1Error: when one of the files is there already, or the folder is a file; nothing is written then.
    """
    parts = shipped()
    names = [name for files in parts.values() for name in files]
    there = [name for name in names if os.path.lexists(folder / name)]
    if there:
        more = f", and {len(there) - 1} more" if len(there) > 1 else ""
        raise RC1Error(
            f"{folder / there[0]}: is there already{more}, expected a folder without them: nothing is overwritten; "
            f"name another folder, or move them away"
        )
    make_folder(folder)
    for name in names:
        with atomic_write(folder / name) as stream:
            stream.write((PROJECT_ROOT / name).read_bytes())
    return parts


def free_bytes(folder: Path) -> int:
    """Free space on the file system that holds `folder`, or will hold it, in bytes."""
    return shutil.disk_usage(nearest(folder)).free


def nearest(path: Path) -> Path:
    """The path itself, or the nearest existing folder above it."""
    return path if path.exists() else nearest(path.parent)


def little_room(folder: Path, little: int) -> str:
    """A hint about a folder's disk if so little space is free that this may be the cause; else empty.

    Args:
        folder: on the disk.
        little: the limit in bytes.
    """
    free = free_bytes(folder)
    if free >= little:
        return ""
    return f"; {free / 2**20:,.0f} MB are free on the disk of {folder}: free space, or name another --workspace"


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
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise RC1Error(_no_right(path, error.strerror)) from None
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
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
        RC1Error: while another run holds it, or where nobody may write it.
    """
    path = workspace.path(LOCK)
    if path.exists():
        with holding(workspace, "a look"):
            pass
    elif (folder := nearest(path.parent)).is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise RC1Error(_no_right(folder, "read-only"))


def _no_right(path: Path, why: str | None) -> str:
    return f"{path}: cannot be written ({why}), expected the right to; give it to yourself, or name another --workspace"
