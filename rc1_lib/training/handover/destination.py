"""Where an export goes: a folder that is not there yet, and is there whole or not at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rc1_lib.errors import RC1Error
from rc1_lib.training.checkpoint import atomic_folder


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
            beside it.
    """
    with _alone(target.parent):
        atomic_folder.recover(target.parent, atomic_folder.only(target))
        check_absent(target)
        with atomic_folder.new_folder(target) as folder:
            yield folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
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
