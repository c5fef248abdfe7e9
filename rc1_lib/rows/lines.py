"""Files of rows as lines: copied and compared byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO


def lines_kept(rows: IO[bytes], keep: Iterable[bool]) -> Iterator[bytes]:
    """The lines of the rows that are to be kept, as they are.

    Args:
        rows: an open file of rows. Blank lines are none: the reader of rows skips them too.
        keep: of each row, whether it is kept.
    """
    lines = (line for line in rows if line.strip())
    return (line for line, kept in zip(lines, keep, strict=True) if kept)


def foreign_lines(part: Path, whole: Path) -> int:
    """How many lines of one file are not, byte for byte, lines of the other."""
    with whole.open("rb") as lines, part.open("rb") as of_part:
        own = {_digest(line) for line in lines}
        return sum(_digest(line) not in own for line in of_part)


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line.rstrip(b"\n"), digest_size=16).digest()
