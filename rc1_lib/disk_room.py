"""How much room is left on the disk, as a sentence for faults that may come of it."""

from __future__ import annotations

import shutil
from pathlib import Path


def little_room(folder: Path, little: int) -> str:
    """What to say of the disk that a folder is on, where so little is free that this may be the reason; else nothing.

    Args:
        folder: on the disk.
        little: bytes.
    """
    free = shutil.disk_usage(folder).free
    if free >= little:
        return ""
    return f"; {free / 2**20:,.0f} MB are free on the disk of {folder}: free space, or name another --workspace"
