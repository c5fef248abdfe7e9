"""How much room is left on the disk, and what to say of it where a fault may come of that."""

from __future__ import annotations

import shutil
from pathlib import Path


def free_bytes(folder: Path) -> int:
    """Free space on the file system that holds `folder`, or will hold it, in bytes."""
    return shutil.disk_usage(nearest(folder)).free


def nearest(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    return path if path.exists() else nearest(path.parent)


def little_room(folder: Path, little: int) -> str:
    """What to say of the disk that a folder is on, where so little is free that this may be the reason; else nothing.

    Args:
        folder: on the disk.
        little: bytes.
    """
    free = free_bytes(folder)
    if free >= little:
        return ""
    return f"; {free / 2**20:,.0f} MB are free on the disk of {folder}: free space, or name another --workspace"
