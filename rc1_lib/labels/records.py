"""Reads the records of a label file: JSON lines, a JSON array, CSV or TSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rc1_lib.errors import RowError, SourceError
from rc1_lib.sources.record_files import read_records
from rc1_lib.workspace.text_files import form_of, read_text

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON = (".jsonl", ".json")
_LONGEST = 2**31 - 1
"""Most bytes of a field, which may contain a whole dialogue."""


def records_of(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every record with the line on which it ends, from 1. A table's column `a.b` is the key `b` of the object `a`.

    Raises:
        RowError: when the file is missing, has another format, or is damaged; names the line.
    """
    suffix = form_of(path)
    if suffix not in (*_JSON, *_DELIMITERS):
        forms = ", ".join((*_JSON, *_DELIMITERS))
        raise RowError(f"{path}: found the file type '{suffix}', expected one of {forms}; convert it")
    if suffix in _JSON:
        try:
            yield from ((record.line, record.value) for record in read_records(path))
        except SourceError as error:
            raise RowError(str(error)) from None
    else:
        yield from _table(path, _DELIMITERS[suffix])


def _table(path: Path, delimiter: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        text = read_text(path)
    except OSError as error:
        raise RowError(f"{path}: cannot be read ({error.strerror}); expected a file of labels") from None
    except UnicodeDecodeError as error:
        raise RowError(f"{path}: is not UTF-8 text (byte {error.start}); save it as UTF-8") from None
    csv.field_size_limit(_LONGEST)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        _check_header(path, header)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise RowError(
                    f"{path}, line {reader.line_num}: found {len(cells)} cells, expected the {len(header)} of the "
                    f"header; quote cells that contain the separator"
                )
            yield reader.line_num, _nested(dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise RowError(f"{path}, line {reader.line_num}: is not a valid table ({error}); quote the cell") from None


def _check_header(path: Path, header: list[str]) -> None:
    if not any(name.strip() for name in header):
        raise RowError(f"{path}, line 1: found no column names, expected a header")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise RowError(f"{path}, line 1: the header names '{twice[0]}' twice; rename one of the columns")


def _nested(cells: Mapping[str, str]) -> dict[str, Any]:
    """`{"a.b": c}` as `{"a": {"b": c}}`; empty cells are None."""
    found: dict[str, Any] = {}
    for name, cell in cells.items():
        value = cell if cell.strip() else None
        outer, dot, inner = name.partition(".")
        if dot and outer and inner:
            found.setdefault(outer, {})[inner] = value
        else:
            found[name] = value
    return found
