"""Files of rows as lines: copy and compare them byte by byte, and find values that should be texts but are not.

Polars would silently convert such a value to a text, and training would fail later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import polars as pl
from polars.datatypes import DataTypeClass

from rc1_lib.workspace.input_files import open_text


def lines_kept(rows: Iterable[bytes], keep: Iterable[bool]) -> Iterator[bytes]:
    """Yield the lines of the rows to keep, unchanged.

    Args:
        rows: the lines of a file of rows; blank lines are skipped, as `read_rows` does.
        keep: for each row, whether to keep it.
    """
    lines = (line for line in rows if line.strip())
    return (line for line, kept in zip(lines, keep, strict=True) if kept)


def seen(lines: Iterable[bytes], see: Callable[[bytes], object]) -> Iterator[bytes]:
    """Yield the lines unchanged and call `see` with each, for example to update a hash."""
    for line in lines:
        see(line)
        yield line


def foreign_lines(part: Path, whole: Path) -> int:
    """Count the lines of `part` that are not, byte for byte, lines of `whole`."""
    with open_text(whole) as lines, open_text(part) as of_part:
        own = {_digest(line) for line in lines}
        return sum(_digest(line) not in own for line in of_part)


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line.rstrip(b"\n"), digest_size=16).digest()


DataType = pl.DataType | DataTypeClass
_SHOWN = 60
_KINDS = {dict: "an object", list: "a list", bool: "a truth value", int: "a number", float: "a number"}


class TextsOnly:
    """Finds values in JSON lines that are not texts although their column holds texts."""

    def __init__(self, columns: Mapping[str, DataType]) -> None:
        """Collect the names of text fields in the columns, at any depth."""
        self._columns = pl.Struct(columns)
        texts, lists = (b"|".join(sorted(names)) for names in _fields(self._columns))
        # Only lines that match are parsed: the search takes half a second per hundred megabytes.
        self._suspect = re.compile(rb'"(?:%s)"\s*:\s*(?!["n\s])|"(?:%s)"\s*:\s*\[\s*(?!["n\s\]])' % (texts, lists))

    def misfit(self, content: bytes, before: int = 0) -> str:
        """Describe the first value that is not a text by line, place and content; empty if there is none.

        Args:
            content: whole lines.
            before: number of lines in the file before them.
        """
        for suspect in self._suspect.finditer(content):
            start = content.rfind(b"\n", 0, suspect.start()) + 1
            end = content.find(b"\n", start)
            try:
                row = orjson.loads(content[start : end if end >= 0 else None])
            except orjson.JSONDecodeError:
                return ""  # the parser reports the line
            for place, value in _misfits(row, self._columns, ""):
                line = before + content.count(b"\n", 0, start) + 1
                shown = orjson.dumps(value).decode()[:_SHOWN]
                return f"line {line}: '{place}' holds {_KINDS[type(value)]} ({shown}), expected a text"
        return ""


def _fields(kind: DataType) -> tuple[set[bytes], set[bytes]]:
    """Return the names of the fields that hold a text, and of those that hold a list of texts."""
    texts: set[bytes] = set()
    lists: set[bytes] = set()
    for field in kind.fields if isinstance(kind, pl.Struct) else ():
        inner = field.dtype.inner if isinstance(field.dtype, pl.List) else field.dtype
        if inner == pl.String:
            (lists if isinstance(field.dtype, pl.List) else texts).add(field.name.encode())
        below = _fields(inner)
        texts |= below[0]
        lists |= below[1]
    return texts, lists


def _misfits(value: Any, kind: DataType, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(kind, pl.Struct) and isinstance(value, dict):
        for field in kind.fields:
            yield from _misfits(value.get(field.name), field.dtype, f"{place}.{field.name}".lstrip("."))
    elif isinstance(kind, pl.List) and isinstance(value, list):
        for at, item in enumerate(value):
            yield from _misfits(item, kind.inner, f"{place}[{at}]")
    elif kind == pl.String and value is not None and not isinstance(value, str):
        yield place, value
