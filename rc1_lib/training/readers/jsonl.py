"""Rows `{"input", "output", "meta"}` from a JSONL file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from rc1_lib.errors import RowError
from rc1_lib.workspace.regular_files import open_regular

_KEYS = {"input", "output", "meta"}


class JSONLReader:
    """Reads one row after the other; each is a mapping with `input`, `output` (texts) and `meta` (a mapping)."""

    def __init__(self, path: Path) -> None:
        """Read from `path`; nothing is opened before the first row is asked for."""
        self.path = path

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All rows, in the file's order; empty lines are passed over.

        Raises:
            RowError: naming the file and the line, what was found and what is expected.
        """
        try:
            with open_regular(self.path) as stream:
                for number, line in enumerate(stream, start=1):
                    if line.strip():
                        yield self._row(line, number)
        except OSError as error:
            raise RowError(f"{self.path}: cannot be read ({error.strerror}); give a JSONL file") from None

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        where = f"{self.path} line {number}"
        try:
            row = orjson.loads(line)
        except ValueError as error:
            raise RowError(f"{where}: is not JSON ({error}); write one object a line") from None
        if not isinstance(row, dict) or row.keys() - _KEYS or not {"input", "output"} <= row.keys():
            found = ", ".join(sorted(row)) if isinstance(row, dict) else type(row).__name__
            raise RowError(
                f"{where}: found {found}, expected an object with input, output and, where wanted, meta, nothing else"
            )
        for key in ("input", "output"):
            if not isinstance(row[key], str) or not row[key].strip():
                raise RowError(f"{where}: '{key}' is {row[key]!r:.60}, expected a text that is not empty")
        meta = row.get("meta", {})
        if not isinstance(meta, dict):
            raise RowError(f"{where}: 'meta' is {meta!r:.60}, expected an object")
        return {"input": row["input"], "output": row["output"], "meta": meta}
