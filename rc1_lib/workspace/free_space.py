"""Free disk space, and a hint for errors that a full disk may have caused."""

from __future__ import annotations

import shutil
from pathlib import Path


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
