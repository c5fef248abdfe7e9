"""Write folders atomically: after a kill or a power cut there is the old one or the new one, never a mixture.

A non-empty folder cannot be replaced by a rename. So the old one is first renamed to a name that `recover` knows, and
the next reader restores it if the new one never appeared. `recover` touches only such names, and only those of RC1's
folders, because it also runs among a user's own files.
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
"""Name of the link to the newest checkpoint."""
CHECKPOINTS = re.compile(r"step_(\d{5,})(?:\.\d+)?")
"""Names of checkpoints. A permanently kept one may have a number at the end."""
_NEW, _ASIDE = ".new-", ".old-"
_UNFINISHED = re.compile(rf"{re.escape(_NEW)}(?P<home>.+)\.(?:[a-z0-9_]{{8}}|gone)")
"""Names from `mkdtemp` in `new_folder`, and from `remove`."""
_LOCK = ".write.lock"


class CheckpointError(RC1Error):
    """The checkpoint is missing, altered, or does not fit what it is loaded into."""


@contextmanager
def write_lock(folder: Path) -> Iterator[None]:
    """Lock `folder` for writing. The kernel releases the lock when the process ends, however it ends.

    Raises:
        CheckpointError: if another process holds the lock, or `folder` cannot be created.
    """
    make_folder(folder, CheckpointError)
    busy = f"another process holds {_LOCK} and writes checkpoints here; wait for it, stop it, or write elsewhere"
    with only_writer(folder / _LOCK, CheckpointError(f"{folder}: {busy}")):
        yield


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `target`, which becomes `target` in one rename if the block succeeds.

    All files are fsynced, then the folder, then the rename. The caller must be the only writer in `target.parent`.
    Modes follow the umask, although safetensors and `mkdtemp` make what they write private.
    """
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f"{_NEW}{target.name}."))
    try:
        yield temporary
        mode = _mode_of_new_folders(temporary)
        for path in (*sorted(temporary.rglob("*")), temporary):
            path.chmod(mode if path.is_dir() else mode & 0o666)
            sync(path)
        _replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """Do as `new_folder` while holding the write lock, after removing what a killed writer left of `target`.

    Raises:
        CheckpointError: if another process holds the lock.
    """
    with write_lock(target.parent):
        recover(target.parent, only(target))
        with new_folder(target) as temporary:
            yield temporary


def check_absent(target: Path) -> None:
    """Reject a target folder that already exists, before any work is done for it.

    Raises:
        RC1Error: if it exists.
    """
    if target.exists() or target.is_symlink():
        raise RC1Error(f"{target}: already exists, and an export replaces nothing; name another folder")


@contextmanager
def absent_folder(target: Path) -> Iterator[Path]:
    """Yield a temporary folder, which becomes `target` if the block succeeds. Remnants of a killed export are removed.

    Raises:
        RC1Error: if `target` already exists, or another export is being written next to it.
    """
    with _only_export(target.parent):
        recover(target.parent, only(target))
        check_absent(target)
        with new_folder(target) as folder:
            yield folder


def _mode_of_new_folders(folder: Path) -> int:
    probe = folder / ".mode"
    probe.mkdir()
    mode = probe.stat().st_mode & 0o777
    probe.rmdir()
    return mode


def _replace(temporary: Path, target: Path) -> None:
    aside = target.parent / f"{_ASIDE}{target.name}"
    if target.exists():
        target.rename(aside)
    temporary.rename(target)
    sync(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


def remove(target: Path) -> None:
    """Remove a folder. It is renamed first, so that a kill leaves no partial folder under the old name."""
    doomed = target.parent / f"{_NEW}{target.name}.gone"
    target.rename(doomed)
    sync(target.parent)
    shutil.rmtree(doomed)


def needs_recovery(folder: Path) -> bool:
    """Whether a checkpoint was moved aside and its replacement never appeared."""
    return any(not _home(aside).exists() for aside in _asides(folder, CHECKPOINTS))


def recover(folder: Path, homes: re.Pattern[str] = CHECKPOINTS) -> None:
    """Restore folders that were moved aside, and remove what killed writers left. Needs the write lock of `folder`.

    Args:
        folder: where to look.
        homes: names of the folders whose remnants may be touched; everything else is left alone.
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


def set_link(link: Path, name: str) -> None:
    """Make the symbolic link `link` point to its sibling `name`, in one rename.

    Raises:
        CheckpointError: if there is something other than a link.
    """
    if link.exists() and not link.is_symlink():
        raise CheckpointError(f"{link}: expected a link to the newest checkpoint, found a file or folder; move it away")
    temporary = link.parent / f"{_NEW}{link.name}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(name)
    temporary.replace(link)
    sync(link.parent)


def only(home: Path) -> re.Pattern[str]:
    """Return a pattern of one folder's name, for `recover`."""
    return re.compile(re.escape(home.name))


def _asides(folder: Path, homes: re.Pattern[str]) -> list[Path]:
    return [path for path in folder.glob(f"{_ASIDE}*") if homes.fullmatch(_home(path).name) and _is_folder(path)]


def _unfinished(folder: Path, homes: re.Pattern[str]) -> list[Path]:
    named = [(path, _UNFINISHED.fullmatch(path.name)) for path in folder.glob(f"{_NEW}*")]
    return [path for path, match in named if match and homes.fullmatch(match["home"]) and _is_folder(path)]


def _is_folder(path: Path) -> bool:
    """Whether it is a folder and not a link. RC1 creates neither links nor files with these names."""
    return path.is_dir() and not path.is_symlink()


def _home(aside: Path) -> Path:
    return aside.parent / aside.name.removeprefix(_ASIDE)


@contextmanager
def _only_export(folder: Path) -> Iterator[None]:
    """Lock `folder` for one export. It is the user's, so the folder itself is locked and no file stays in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RC1Error(f"{folder}: cannot be written ({error.strerror}); name another folder") from None
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RC1Error(f"{folder}: another export is being written here; wait for it, or name another folder") from None
