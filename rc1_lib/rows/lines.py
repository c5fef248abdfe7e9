"""Files of rows as lines: copied and compared byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from rc1_lib.workspace.text_files import open_text


def lines_kept(rows: Iterable[bytes], keep: Iterable[bool]) -> Iterator[bytes]:
    """The lines of the rows that are to be kept, as they are.

    Args:
        rows: the lines of a file of rows. Blank lines are none: the reader of rows skips them too.
        keep: of each row, whether it is kept.
    """
    lines = (line for line in rows if line.strip())
    return (line for line, kept in zip(lines, keep, strict=True) if kept)


def seen(lines: Iterable[bytes], see: Callable[[bytes], object]) -> Iterator[bytes]:
    """The lines as they are; `see` is called with each, such as a hash that they go into."""
    for line in lines:
        see(line)
        yield line


def foreign_lines(part: Path, whole: Path) -> int:
    """How many lines of one file are not, byte for byte, lines of the other."""
    with open_text(whole) as lines, open_text(part) as of_part:
        own = {_digest(line) for line in lines}
        return sum(_digest(line) not in own for line in of_part)


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line.rstrip(b"\n"), digest_size=16).digest()
