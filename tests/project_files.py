"""A test that would change a file of the project fails where it tries; what other processes do there is their business.

Python reports every write of this process to an audit hook, and so do the processes that tests fork. Those that tests
start anew are not watched: they start in an empty folder, and write only into a workspace that they are given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from rc1_lib.workspace.artifacts import PROJECT_ROOT

_OF_TOOLS = {".venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
"""Folders in which Python and its tools keep what they can make again."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_guarding = False


def guard() -> None:
    """Begin to watch. A hook cannot be removed, so `release` only silences it."""
    global _guarding
    if not _guarding:
        sys.addaudithook(_check)
    _guarding = True


def release() -> None:
    """Stop watching: reports of pytest's plugins may lie in the project."""
    global _guarding
    _guarding = False


def _check(event: str, arguments: tuple[Any, ...]) -> None:
    if not _guarding:
        return
    for path in _changed(event, arguments):
        if not isinstance(path, int):
            inside = os.path.relpath(os.fsdecode(path), PROJECT_ROOT).split(os.sep)
            assert inside[0] == os.pardir or _OF_TOOLS & {*inside}, f"a test would change a file of the project: {path}"


def _changed(event: str, arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the paths, or descriptors of open files, that an event is about to change."""
    if event == "open":
        path, _, flags = arguments
        if flags & _WRITING:
            yield path
    elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.rename"):
        if arguments[-1] == -1:  # else the path is relative to an open folder, which `shutil.rmtree` has reported
            yield from arguments[: 2 if event == "os.rename" else 1]
    elif event in ("shutil.rmtree", "sqlite3.connect"):
        yield arguments[0]
