"""Opens files that a user names: regular files only, since reading a pipe or a device could wait forever."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path


def open_regular(path: Path) -> io.BufferedReader:
    """A binary stream over a regular file, or over the regular file that a link points to.

    Raises:
        OSError: when it cannot be opened, or is a folder, a pipe, a socket or a device; `strerror` says which.
    """
    # Without O_NONBLOCK the call itself would wait until somebody writes to a pipe.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return open(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    kind = "pipe" if stat.S_ISFIFO(mode) else "device or socket"
    raise OSError(errno.EINVAL, f"is a {kind}, not a regular file", str(path))


def read_regular(path: Path, most: int | None = None) -> bytes:
    """The bytes of a regular file.

    Args:
        path: of the file.
        most: largest size in bytes; default: no limit.

    Raises:
        OSError: as `open_regular` does, and when it is larger than `most`.
    """
    with open_regular(path) as stream:
        content = stream.read() if most is None else stream.read(most + 1)
    if most is not None and len(content) > most:
        raise OSError(errno.EFBIG, f"is larger than {most:,} bytes", str(path))
    return content
