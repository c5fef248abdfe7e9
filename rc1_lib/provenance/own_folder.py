"""A folder of the user's own for what was found out about a workspace.

It lies outside that workspace, so that whoever can merely write the workspace can put nothing there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rc1_lib.errors import RC1Error
from rc1_lib.run import VERDICTS
from rc1_lib.workspace.artifacts import Workspace, atomic_write, sha256_json
from rc1_lib.workspace.regular_files import read_regular


def keep(place: Workspace, name: str, content: bytes, most: int | None = None) -> None:
    """Keep a file for the user's next process; where there is no folder for it, or no room in it, nothing is kept.

    Args:
        place: what the file is about.
        name: of the file.
        content: of the file.
        most: how many files of this name's suffix stay, the newest ones; default: all.
    """
    folder = _folder(place)
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(folder):
            return
        with atomic_write(folder / name) as stream:
            stream.write(content)
        if most is not None:
            of_this_kind = folder.glob(f"*{Path(name).suffix}")
            for old in sorted(of_this_kind, key=lambda path: path.stat().st_mtime_ns)[:-most]:
                old.unlink(missing_ok=True)
    except (OSError, RC1Error):
        return  # the next process finds it out anew


def kept(place: Workspace, name: str) -> bytes | None:
    """What lies there under this name; None where nothing does that can be believed."""
    folder = _folder(place)
    if folder is None or not _is_ours(folder):
        return None
    try:
        return read_regular(folder / name)
    except OSError:
        return None


def _folder(place: Workspace) -> Path | None:
    """Where something about a workspace is kept; None where it cannot be, or is not to be."""
    named = os.environ.get(VERDICTS)
    if named is None:
        caches = os.environ.get("XDG_CACHE_HOME", "")
        home = os.path.expanduser("~")
        named = os.path.join(caches if os.path.isabs(caches) else os.path.join(home, ".cache"), "rc1", "verdicts")
    folder = Path(named).expanduser()
    if not named or not folder.is_absolute():
        return None
    root = place.root.resolve()
    own = folder.resolve() / sha256_json(str(root))[:32]
    return None if own.is_relative_to(root) else own


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can write there, as far as its owner and mode tell."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
