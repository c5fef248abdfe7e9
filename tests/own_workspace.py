"""The project's own workspace, which belongs to whoever ran `make run`: what lies there, and who opens it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rc1_lib.workspace.artifacts import PROJECT_ROOT

OWN = (".prefect", "checkpoints", "configs/weights.json", "data", "logs", "outputs", "reports")
"""What runs write below their workspace, by default the project."""

SHIPPED = ("configs", "models", "templates")
"""What comes with the code; tests read it and leave it as it is."""

_CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
_AT = tuple(str(PROJECT_ROOT / name) for name in OWN)
_ROOT = str(PROJECT_ROOT) + os.sep
_WATCHED = {"open", "os.listdir", "os.scandir", "sqlite3.connect", "os.mkdir", "os.remove", "shutil.rmtree"}
_opened: list[str] | None = None


def is_own(path: str) -> bool:
    """Whether an absolute path lies in the project's own workspace."""
    return any(path == own or path.startswith(own + os.sep) for own in _AT)


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _opened is None or event not in _WATCHED or not arguments:
        return
    path = arguments[0]
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    # Most of what is opened lies elsewhere, by a plain absolute path.
    if not isinstance(path, str) or (path[:1] == os.sep and ".." not in path and not path.startswith(_ROOT)):
        return
    if is_own(os.path.abspath(path)):
        _opened.append(f"{os.environ.get('PYTEST_CURRENT_TEST', 'a fixture')}: {event} {path}")


sys.addaudithook(_hook)  # for good: Python takes none back


@contextmanager
def watched() -> Iterator[list[str]]:
    """Keep a list of what this process does with files of the project's own workspace."""
    global _opened
    before, _opened = _opened, []
    try:
        yield _opened
    finally:
        _opened = before


def everything(root: Path = PROJECT_ROOT) -> dict[str, tuple[int, int]]:
    """Path -> size and time of the last change: all in OWN and SHIPPED; of what lies beside them, the names."""
    found = {path.name: (0, 0) for path in root.iterdir() if path.name not in _CACHES}
    for top in (*OWN, *SHIPPED):
        for path in (root / top, *(root / top).rglob("*")):
            if path.is_symlink() or path.exists():
                seen = path.lstat()
                found[str(path.relative_to(root))] = (0 if path.is_dir() else seen.st_size, seen.st_mtime_ns)
    return found
