"""Laying out a workspace: the shipped files that a run reads, copied to where they can be read and altered."""

from __future__ import annotations

import os
from pathlib import Path

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import PROJECT_ROOT, atomic_write, make_folder

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
