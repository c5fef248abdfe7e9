"""Read the records of a file, each with its line: JSON lines, one JSON array, or a Parquet table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from rc1_lib.errors import SourceError
from rc1_lib.workspace.input_files import open_regular, read_text

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_PART_OF_A_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_OPEN_OBJECT = re.compile(r"\s*\{[ \t\r]*\n")
_LINE = re.compile(r"([^\n]*)\n?")


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A decoded record, its number in the file (from 0), and the line or table row where it starts (from 1)."""

    value: Mapping[str, Any]
    index: int
    line: int


def read_table(path: Path) -> Iterator[FileRecord]:
    """Yield the rows of a Parquet table in order.

    Raises:
        SourceError: when the file is unreadable or not Parquet.
    """
    try:
        with open_regular(path) as stream:
            table = pl.read_parquet(stream)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SourceError(f"{path} cannot be read as a Parquet table ({error}); fetch the file again.") from None
    yield from (FileRecord(row, index, index + 1) for index, row in enumerate(table.iter_rows(named=True)))


def read_records(path: Path) -> Iterator[FileRecord]:
    """Yield the records of `path` in order: elements of a JSON array, or one JSON object per line.

    Raises:
        SourceError: when the file is unreadable, not UTF-8 or not JSON, or a record is not a JSON object.
    """
    try:
        content = read_text(path)
    except OSError as error:
        raise SourceError(f"{path} cannot be read ({error.strerror}); expected a file of JSON records.") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{path} is not UTF-8 text (byte {error.start}); fetch the file again.") from error
    if opened := _OPEN_OBJECT.match(content):
        line = opened[0].count("\n")
        raise SourceError(
            f"{path}, line {line}: found one object over several lines; expected a list of records, or one a line."
        )
    values = _array(content, path) if content.lstrip()[:1] == "[" else _lines(content, path)
    suspect = _PART_OF_A_CHARACTER.search(content) is not None
    for index, (line, value) in enumerate(values):
        if suspect:
            _check_characters(value, f"{path}, line {line}")
        if not isinstance(value, dict):
            found = type(value).__name__
            raise SourceError(f"{path}, line {line}: found a {found}; expected a JSON object with the record's keys.")
        yield FileRecord(value, index, line)


def _check_characters(value: object, where: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])
        raise SourceError(f"{where}: holds half a character ({half}); expected whole ones.") from None


def _lines(content: str, path: Path) -> Iterator[tuple[int, Any]]:
    # Only "\n" ends a line: real questions contain U+2028, at which str.splitlines() would split.
    for line, found in enumerate(_LINE.finditer(content), start=1):
        row = found[1]
        if row.strip():
            value, end = _decode(row, _skip_space(row, 0), path, line)
            if _skip_space(row, end) != len(row):
                raise SourceError(f"{path}, line {line}: text follows the JSON value; expected one object per line.")
            yield line, value


def _array(content: str, path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the elements one by one with their lines, which `json.loads` of the whole array would lose."""
    at, counted, line = content.index("[") + 1, 0, 1
    first = True
    while True:
        at = _skip_space(content, at)
        line += content.count("\n", counted, at)
        counted = at
        if content[at : at + 1] == "]" and first:
            return
        value, end = _decode(content, at, path, line)
        first = False
        yield line, value
        at = _skip_space(content, end)
        mark = content[at : at + 1]
        if mark == "]":
            if _skip_space(content, at + 1) != len(content):
                here = line + content.count("\n", counted, at)
                raise SourceError(f"{path}, line {here}: text follows the array's end; expected one array in the file.")
            return
        if mark != ",":
            here = line + content.count("\n", counted, at)
            found = f"found {mark!r}" if mark else "the file ends"
            raise SourceError(
                f"{path}, line {here}: {found} after a record; expected ',' or ']'. It looks truncated or edited: "
                "fetch the file again."
            )
        at += 1


def _decode(content: str, at: int, path: Path, line: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(content, at)
    except json.JSONDecodeError as error:
        here = line + content.count("\n", at, error.pos)
        reason = error.msg
    except (ValueError, RecursionError) as error:
        # A very long number or deep nesting is valid JSON, but not a record of these data sets.
        here, reason = line, str(error)
    raise SourceError(
        f"{path}, line {here}: not valid JSON ({reason}); expected a JSON object for each record. "
        "It looks truncated or edited: fetch the file again."
    )


def _skip_space(content: str, at: int) -> int:
    match = _SPACE.match(content, at)
    return match.end() if match else at
