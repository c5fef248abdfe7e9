"""Lines put away on the disk until it is known which of them are wanted."""

from __future__ import annotations

import tempfile
from types import TracebackType
from typing import NamedTuple


class Place(NamedTuple):
    """Where a line was put."""

    start: int
    size: int


class TemporaryLines:
    """A file without a name, gone with the block or with the process."""

    def __enter__(self) -> TemporaryLines:
        self._file = tempfile.TemporaryFile()
        self._end = 0
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def put(self, line: bytes) -> Place:
        """Put a line away; all are put before the first is taken."""
        self._file.write(line)
        place = Place(self._end, len(line))
        self._end += len(line)
        return place

    def take(self, place: Place) -> bytes:
        """The line that was put there."""
        self._file.seek(place.start)
        return self._file.read(place.size)
