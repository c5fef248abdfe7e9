"""Putting a folder in place so that a kill or a power cut leaves the old one or the new one, never something between.

A folder cannot be renamed over one that is not empty. Where one has to be replaced, the old one steps aside under a
name that `recover` knows; whoever looks next puts it back if the new one did not make it. `recover` touches only what
bears such a name and belongs to a folder of RC1: it also runs where a user's own files lie.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import make_folder, only_writer, sync

LATEST = "latest"
"""The link to the newest checkpoint."""
CHECKPOINTS = re.compile(r"step_(\d{5,})(?:\.\d+)?")
"""Names of checkpoints, with the number after them that one kept for good may have."""
_NEW, _ASIDE = ".new-", ".old-"
_UNFINISHED = re.compile(rf"{re.escape(_NEW)}(?P<home>.+)\.(?:[a-z0-9_]{{8}}|gone)")
"""What `mkdtemp` makes for `new_folder`, and what `remove` makes."""
_LOCK = ".write.lock"


class CheckpointError(RC1Error):
    """A checkpoint that is missing, altered, or does not fit what it is loaded into."""


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only writer in `folder`. The kernel releases the lock of a process that ends, however it ends.

    Raises:
        CheckpointError: while another process holds it, or when `folder` cannot be made.
    """
    make_folder(folder, CheckpointError)
    busy = f"another process is writing checkpoints here and holds {_LOCK}; wait for it or end it, or write elsewhere"
    with only_writer(folder / _LOCK, CheckpointError(f"{folder}: {busy}")):
        yield


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary sibling of `target` that becomes `target` in one rename when the block ends well.

    Every file in it is fsynced, then the folder, then the rename. The caller is the only writer in `target.parent`.
    """
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{_NEW}{target.name}."))
    try:
        yield temporary
        temporary.chmod(0o755)
        for path in sorted(temporary.rglob("*")):
            sync(path)
        sync(temporary)
        _replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """As `new_folder`, as the only writer next to `target`; what a killed writer left of it is cleared up first.

    Raises:
        CheckpointError: while another process writes there.
    """
    with alone(target.parent):
        recover(target.parent, only(target))
        with new_folder(target) as temporary:
            yield temporary


def check_absent(target: Path) -> None:
    """Refuse a folder that is there already, before anything is worked out for it.

    Raises:
        RC1Error: saying so.
    """
    if target.exists() or target.is_symlink():
        raise RC1Error(f"{target}: is there already, and an export replaces nothing; give another folder with --to")


@contextmanager
def absent_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes `target` when the block ends well; what a killed export left of it goes first.

    Raises:
        RC1Error: when `target` has come to be there since it was looked for, or while another export is written
            next to it.
    """
    with _only_export(target.parent):
        recover(target.parent, only(target))
        check_absent(target)
        with new_folder(target) as folder:
            yield folder


def _replace(temporary: Path, target: Path) -> None:
    aside = target.parent / f"{_ASIDE}{target.name}"
    if target.exists():
        target.rename(aside)
    temporary.rename(target)
    sync(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


def remove(target: Path) -> None:
    """Remove a folder. It loses its name first, so that a kill leaves no half of it under a whole one's name."""
    doomed = target.parent / f"{_NEW}{target.name}.gone"
    target.rename(doomed)
    sync(target.parent)
    shutil.rmtree(doomed)


def needs_recovery(folder: Path) -> bool:
    """Whether a checkpoint stepped aside and its successor never came."""
    return any(not _home(aside).exists() for aside in _asides(folder, CHECKPOINTS))


def recover(folder: Path, homes: re.Pattern[str] = CHECKPOINTS) -> None:
    """Put back what stepped aside, and remove what killed writers left. The caller is the only writer in `folder`.

    Args:
        folder: where to look.
        homes: names of the folders whose leftovers may be touched; everything else belongs to somebody else.
    """
    for aside in _asides(folder, homes):
        if _home(aside).exists():
            shutil.rmtree(aside)
        else:
            aside.rename(_home(aside))
            sync(folder)
    for unfinished in _unfinished(folder, homes):
        shutil.rmtree(unfinished)
    link = folder / f"{_NEW}{LATEST}"
    if link.is_symlink():
        link.unlink()


def point(link: Path, name: str) -> None:
    """Make the symbolic link `link` lead to its sibling `name`, in one rename.

    Raises:
        CheckpointError: when something that is no link lies there.
    """
    if link.exists() and not link.is_symlink():
        raise CheckpointError(f"{link}: is no link; move it away, RC1 keeps a link to the newest checkpoint there")
    temporary = link.parent / f"{_NEW}{link.name}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(name)
    temporary.replace(link)
    sync(link.parent)


def only(home: Path) -> re.Pattern[str]:
    """The name of one folder, for `recover`."""
    return re.compile(re.escape(home.name))


def _asides(folder: Path, homes: re.Pattern[str]) -> list[Path]:
    return [path for path in folder.glob(f"{_ASIDE}*") if homes.fullmatch(_home(path).name) and _is_folder(path)]


def _unfinished(folder: Path, homes: re.Pattern[str]) -> list[Path]:
    named = [(path, _UNFINISHED.fullmatch(path.name)) for path in folder.glob(f"{_NEW}*")]
    return [path for path, match in named if match and homes.fullmatch(match["home"]) and _is_folder(path)]


def _is_folder(path: Path) -> bool:
    """Whether it is a folder itself: RC1 makes no links and no files under these names."""
    return path.is_dir() and not path.is_symlink()


def _home(aside: Path) -> Path:
    return aside.parent / aside.name.removeprefix(_ASIDE)


@contextmanager
def _only_export(folder: Path) -> Iterator[None]:
    """Be the only export in `folder`, which is the user's: the folder itself is locked, no file is left in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RC1Error(f"{folder}: cannot be written ({error.strerror}); give another folder with --to") from None
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RC1Error(
            f"{folder}: another export is being written here; wait for it, or give another folder with --to"
        ) from None
