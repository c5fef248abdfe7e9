"""Open a user's files: only regular ones, since a pipe could block forever; text is UTF-8, plain or packed."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

from rc1_lib.errors import ConfigError


def named_path(named: str | Path, what: str) -> Path:
    """Return the absolute path that a user named, `~` and `~user` expanded.

    Args:
        what: the flag or variable, for the error, which does not repeat the path.

    Raises:
        ConfigError: when there is no such user.
    """
    try:
        return Path(named).expanduser().resolve()
    except RuntimeError:
        raise ConfigError(f"{what}: begins with ~ and the name of nobody on this machine; write out the path") from None


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file, or the regular file that a link points to, as a binary stream.

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
    """Return the bytes of a regular file.

    Args:
        most: maximum size in bytes; default: no limit.

    Raises:
        OSError: as `open_regular` does, and when it is larger than `most`.
    """
    with open_regular(path) as stream:
        content = stream.read() if most is None else stream.read(most + 1)
    if most is not None and len(content) > most:
        raise OSError(errno.EFBIG, f"is larger than {most:,} bytes", str(path))
    return content


_LITTLE, _RATIO = 64 * 2**20, 100
"""Bytes that any packed file may unpack to, and how many times its size a larger one may: text packs about tenfold."""
_MARK = b"\xef\xbb\xbf"
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_REFUSED = {
    b"PK\x03\x04": "is packed with zip; unpack it first",
    b"\x78\x9c": "is packed with zlib; unpack it first",
    b"BZh": "is packed with bzip2; unpack it first",
    b"\xfd7zXZ": "is packed with xz; unpack it first",
    b"PAR1": "is a Parquet table, which only a source's folders may contain; write its rows as JSON lines",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}
"""First bytes of a file -> the name of its packing (`_PACKED`), or why it is not read (`_REFUSED`)."""


def open_text(path: Path) -> io.BufferedReader | io.BytesIO:
    """Open a text file as bytes, without a byte order mark, and unpacked if it is packed with gzip or zstd.

    A packed file is unpacked into memory; each of its lines, including the last one, then ends with a line feed.

    Raises:
        OSError: when it cannot be opened, is not a regular file, is damaged or has another form; `strerror` says which.
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
    """Return the text of a file, read by `open_text`.

    Args:
        most: maximum size in bytes, packed and unpacked; default: no limit.

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


def is_hidden(path: Path, below: Path) -> bool:
    """Return whether a file below a folder, or a folder between, is hidden: macOS leaves `._NAME` next to a copy."""
    return any(part.startswith(".") for part in path.relative_to(below).parts)


def form_of(path: Path) -> str:
    """Return the suffix for a file's form: `.jsonl` for `rows.jsonl` and for `rows.JSONL.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in (".gz", ".zst")), "")


def _unpacked(path: Path, content: bytes, name: str) -> bytes:
    import polars as pl  # slow to import, and few files are packed

    try:
        # Its memory does not grow with the text, as that of the next line does.
        lengths = pl.scan_lines(content).select(pl.col("line").str.len_bytes() + 1)
        size = lengths.sum().collect(engine="streaming").item()
        lines = pl.read_lines(content)["line"] if size <= max(_LITTLE, _RATIO * len(content)) else None
    except (OSError, pl.exceptions.PolarsError) as error:
        raise OSError(errno.EINVAL, f"is packed with {name} and damaged: {error}; get it again", str(path)) from None
    if lines is None:
        why = f"is packed with {name} and unpacks to {size:,} bytes, {_RATIO} times its size or more; unpack it first"
        raise OSError(errno.EFBIG, why, str(path))
    return "".join(f"{line}\n" for line in lines).encode()
