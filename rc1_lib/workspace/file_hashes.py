"""SHA-256 of files, with a cache for files that have not changed since they were hashed.

A preflight needs the fingerprints of the same files forty times. Inside `hashes_known` a file is read again if its
inode, size, modification time or change time (ctime) has changed; otherwise it is assumed to be unchanged. No system
call sets a file's ctime, so restoring size and modification time does not hide an edit; FAT and sshfs have no ctime and
report the modification time instead. The cache assumes that nobody sets the machine's clock back, bypasses the file
system, or writes through a memory mapping with a dirty page, which the kernel stamps only when it writes the page out.
So code that must be certain calls `forget_hashes` first: a round before its final check, and the ticket before it is
issued. Outside the block every file is read every time, as in training and when a ticket is verified.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.input_files import open_regular

SETTLED_S = 2.0
"""Minimum age of a file's last change for caching its hash: file systems count time in steps, and a second change
within one step leaves no trace."""
Stamp = tuple[int, int, int, int, int]
_KNOWN: ContextVar[dict[Stamp, str] | None] = ContextVar("file_hashes", default=None)


@contextmanager
def hashes_known() -> Iterator[None]:
    """Inside this block, and in tasks started with its context, `sha256_known` reads each file once."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def forget_hashes() -> None:
    """Forget all cached hashes, so that every file is read again; does nothing outside `hashes_known`."""
    known = _KNOWN.get()
    if known is not None:
        known.clear()


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex.

    Raises:
        RC1Error: when it is a folder, a dangling link or not readable.
    """
    with _opened(path) as stream:
        return _digest(stream)


def sha256_known(path: Path) -> str:
    """Return the same as `sha256_file`, but inside `hashes_known` without reading unchanged files again.

    Raises:
        RC1Error: when it is a folder, a dangling link or not readable.
    """
    known = _KNOWN.get()
    if known is None:
        return sha256_file(path)
    with _opened(path) as stream:
        stamp, began = _stamp(os.fstat(stream.fileno())), time.time()
        if stamp in known:
            return known[stamp]
        found = _digest(stream)
        if began - stamp[-1] / 1e9 > SETTLED_S and _stamp(os.fstat(stream.fileno())) == stamp:
            known[stamp] = found
        return found


def stamps(path: Path) -> dict[str, Stamp]:
    """Return path -> device, inode, size and times of a file, or of all files in a folder, without missing ones."""
    found: dict[str, Stamp] = {}
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        with suppress(FileNotFoundError):
            found[str(file)] = _stamp(file.stat())
    return found


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with open_regular(path) as stream:
            yield stream
    except OSError as error:
        raise RC1Error(f"{path}: cannot be read ({error.strerror}); expected a file") from None


def _digest(stream: IO[bytes]) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _stamp(found: os.stat_result) -> Stamp:
    """Return values that change if the file is replaced or written; the last one is the ctime, in ns."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
