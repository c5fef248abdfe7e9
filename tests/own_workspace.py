"""The files of the project's own workspace, which belong to the user who ran `make run`."""

from __future__ import annotations

import os
from pathlib import Path

from rc1_lib.workspace.artifacts import PROJECT_ROOT

OWN = ("checkpoints", "configs/weights.json", "data", "logs", "outputs", "reports")
"""Paths that runs write below their workspace, by default the project."""

SHIPPED = ("configs", "models", "templates")
"""Folders shipped with the code; tests only read them."""

_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
_AT = tuple(str(PROJECT_ROOT / name) for name in OWN)


def is_own(path: str) -> bool:
    """Whether an absolute path lies in the project's own workspace."""
    return any(path == own or path.startswith(own + os.sep) for own in _AT)


def everything(root: Path = PROJECT_ROOT) -> dict[str, tuple[int, int]]:
    """Path -> size and time of the last change, of everything in OWN and SHIPPED; (0, 0) for other top-level files."""
    found = {path.name: (0, 0) for path in root.iterdir() if path.name not in _CACHES}
    for top in (*OWN, *SHIPPED):
        for path in (root / top, *(root / top).rglob("*")):
            if path.is_symlink() or path.exists():
                seen = path.lstat()
                found[str(path.relative_to(root))] = (0 if path.is_dir() else seen.st_size, seen.st_mtime_ns)
    return found
