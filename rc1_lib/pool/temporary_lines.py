"""Keep lines on disk until it is known which of them are needed."""

from __future__ import annotations

import tempfile
from types import TracebackType
from typing import NamedTuple


class Place(NamedTuple):
    """Position of a stored line, in bytes."""

    start: int
    size: int


class TemporaryLines:
    """An anonymous file, removed at the end of the block or of the process."""

    def __enter__(self) -> TemporaryLines:
        self._file = tempfile.TemporaryFile()
        self._end = 0
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def put(self, line: bytes) -> Place:
        """Append a line. Store all lines before you read the first."""
        self._file.write(line)
        place = Place(self._end, len(line))
        self._end += len(line)
        return place

    def take(self, place: Place) -> bytes:
        """Read the line at `place`."""
        self._file.seek(place.start)
        return self._file.read(place.size)
