"""Opens files that a user names or brings along: regular files only, plain or packed text, always as UTF-8.

Reading a pipe or a device could wait forever.
"""

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


_MARK = b"\xef\xbb\xbf"
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_REFUSED = {
    b"PK\x03\x04": "is packed with zip; unpack it first",
    b"\x78\x9c": "is packed with zlib; unpack it first",
    b"BZh": "is packed with bzip2; unpack it first",
    b"\xfd7zXZ": "is packed with xz; unpack it first",
    b"PAR1": "is a Parquet table, which only a source's folders may hold; write its rows as JSON lines",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}
"""How files begin -> with what they are packed, or why they are not read."""


def open_text(path: Path) -> io.BufferedReader | io.BytesIO:
    """The bytes of a text file without a byte order mark, unpacked where it is packed with gzip or zstd.

    A packed file is unpacked into memory; each of its lines then ends with a line feed, the last one too.

    Raises:
        OSError: when it cannot be opened, is no regular file, or is damaged or of another form; `strerror` says which.
    """
    stream = open_regular(path)
    try:
        start = stream.peek(8)
        refused = next((why for magic, why in _REFUSED.items() if start.startswith(magic)), None)
        if refused is not None:
            raise OSError(errno.EINVAL, refused, str(path))
        packed = next((name for magic, name in _PACKED.items() if start.startswith(magic)), None)
        if packed is not None:
            with stream:
                return io.BytesIO(_unpacked(path, stream.read(), packed).removeprefix(_MARK))
        if start.startswith(_MARK):
            stream.read(len(_MARK))
    except BaseException:
        stream.close()
        raise
    return stream


def read_text(path: Path, most: int | None = None) -> str:
    """The text of a file, as `open_text` reads it.

    Args:
        path: of the file.
        most: largest size in bytes, packed and unpacked; default: no limit.

    Raises:
        OSError: as `open_text` does, and when it is larger than `most`.
        UnicodeDecodeError: when it is not UTF-8.
    """
    large = most is not None and path.stat().st_size > most
    if not large:
        with open_text(path) as stream:
            content = stream.read() if most is None else stream.read(most + 1)
        large = most is not None and len(content) > most
    if large:
        raise OSError(errno.EFBIG, f"is larger than {most:,} bytes", str(path))
    return content.decode()


def form_of(path: Path) -> str:
    """What a file's name says of its form: `.jsonl` of `rows.jsonl` and of `rows.JSONL.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in (".gz", ".zst")), "")


def _unpacked(path: Path, content: bytes, name: str) -> bytes:
    import polars as pl  # here, because configurations are read without it, and few files are packed

    try:
        lines = pl.read_lines(content)["line"]
    except (OSError, pl.exceptions.PolarsError) as error:
        raise OSError(errno.EINVAL, f"is packed with {name} and damaged: {error}; fetch it again", str(path)) from None
    return "".join(f"{line}\n" for line in lines).encode()
