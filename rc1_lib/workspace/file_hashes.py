"""SHA-256 of files, and of files that lie as they were when they were hashed.

A preflight asks forty times for the fingerprints of the same files. Inside `hashes_known` a file is read again where
its inode, size, time of last write or time of last change (ctime) is another one, and believed to be what it was where
all of them are the same. No call sets a file's ctime, so that a size and a time of last write that were put back do not
hide an edit; FAT and sshfs keep none, and give out the time of last write in its place. It is relied on that nobody
turns the machine's clock back, writes past the file system, or writes through a mapping of the file into memory that
was dirty already, which the kernel does not stamp anew before it has written the page out. So whoever has to be sure
calls `read_anew` first: a round does before its last look, the ticket before it is issued. Outside the block every file
is read every time, as by everybody who verifies a ticket or trains.
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
from rc1_lib.workspace.regular_files import open_regular

SETTLED_S = 2.0
"""Age of a file's last change from which its hash is remembered: file systems count time in steps, and of two changes
within one step the second leaves no mark."""
Stamp = tuple[int, int, int, int, int]
_KNOWN: ContextVar[dict[Stamp, str] | None] = ContextVar("file_hashes", default=None)


@contextmanager
def hashes_known() -> Iterator[None]:
    """Within this block, and in what is started from it with its context, `sha256_known` reads a file once."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def read_anew() -> None:
    """Have every file read again that is asked for from now on; outside `hashes_known` that is so anyway."""
    known = _KNOWN.get()
    if known is not None:
        known.clear()


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex.

    Raises:
        RC1Error: when it is a folder, a dangling link or not readable.
    """
    with _opened(path) as stream:
        return _digest(stream)


def sha256_known(path: Path) -> str:
    """As `sha256_file`; inside `hashes_known` without reading what lies as it was when it was read.

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
    """Path -> device, inode, size and times of a file, or of all in a folder; nothing of what is not there."""
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
        raise RC1Error(f"{path}: cannot be read ({error.strerror}), expected a file") from None


def _digest(stream: IO[bytes]) -> str:
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def _stamp(found: os.stat_result) -> Stamp:
    """What changes where the file is another one or was written; the last of it is the ctime, in ns."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
