"""The folder of a workspace: the shipped files in it, the free space on its disk, and the lock of its current run."""

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
"""What is shipped -> pattern of its files, relative to the project; `setup.py` has the same."""


def shipped() -> dict[str, list[str]]:
    """Return what is shipped -> its files, relative to the project."""
    return {
        part: sorted(path.relative_to(PROJECT_ROOT).as_posix() for path in PROJECT_ROOT.glob(pattern))
        for part, pattern in PARTS.items()
    }


def lay_out(folder: Path) -> dict[str, list[str]]:
    """Copy what is shipped into a folder, which is created if missing, and return what is there then.

    After a kill the same call copies the rest.

    Raises:
        RC1Error: when one of the files exists with another content, or the folder is a file; then nothing is written.
    """
    parts = shipped()
    names = [name for files in parts.values() for name in files]
    there = [name for name in names if os.path.lexists(folder / name) and not _same(folder / name, PROJECT_ROOT / name)]
    if there:
        more = f", and {len(there) - 1} more" if len(there) > 1 else ""
        raise RC1Error(
            f"{folder / there[0]}: already exists{more}; nothing is overwritten; name another folder, or move such "
            f"files away"
        )
    make_folder(folder)
    for name in names:
        target = folder / name
        for leftover in target.parent.glob(f".{target.name}.*.tmp"):  # of a kill; it would count in a folder's hash
            leftover.unlink(missing_ok=True)
        with atomic_write(target) as stream:
            stream.write((PROJECT_ROOT / name).read_bytes())
    return parts


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and one.read_bytes() == other.read_bytes()


def free_bytes(folder: Path) -> int:
    """Return the free space, in bytes, on the file system of `folder`, which need not exist yet."""
    return shutil.disk_usage(nearest(folder)).free


def nearest(path: Path) -> Path:
    """Return the path if it exists, else the nearest existing folder above it."""
    return path if path.exists() else nearest(path.parent)


def little_room(folder: Path, little: int) -> str:
    """Return a hint if a disk has so little free space that this may have caused an error; else "".

    Args:
        folder: a folder on the disk.
        little: the limit in bytes.
    """
    free = free_bytes(folder)
    if free >= little:
        return ""
    return f"; {free / 2**20:,.0f} MB are free on the disk of {folder}: free space, or name another --workspace"


LOCK = "reports/rc1/.run.lock"


@contextmanager
def holding(workspace: Workspace, what: str) -> Iterator[None]:
    """Hold a workspace's lock, which the kernel releases even if the process is killed.

    Args:
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
        raise RC1Error(f"{path}: cannot be written ({error.strerror}); if it is not a file, move it away") from None
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
    """Check that no run holds the lock now; a run that begins must still hold it itself.

    Raises:
        RC1Error: if another run holds the lock, or this user may not write it.
    """
    path = workspace.path(LOCK)
    if path.exists():
        with holding(workspace, "a check"):
            pass
    elif (folder := nearest(path.parent)).is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        raise RC1Error(_no_right(folder, "read-only"))


def _no_right(path: Path, why: str | None) -> str:
    return f"{path}: cannot be written ({why}); change its permissions, or choose another --workspace"
