"""The standard streams, so that no command hangs on who reads what it prints.

A reader that leaves early (`rc1 ... | head -1`), a stream that was closed before the program began (`>&-`) and a full
disk behind it would else end a command half way, by whatever exit code, or have a file opened in the stream's place.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

STDOUT = "standard output"
"""What it is called where it cannot be written."""


class Outlet:
    """A stream that goes on being written to when nobody reads it any more: what is said then is lost, and no more."""

    def __init__(self, stream: TextIO, name: str = "") -> None:
        """Stand before `stream`; where it has a name, what cannot be written for another reason is a fault of it."""
        self._stream, self._name = stream, name
        self._lost = False

    def write(self, text: str) -> int:
        """Print, as long as somebody reads.

        Raises:
            OSError: once, where the stream has a name and cannot be written: naming it.
        """
        if not self._lost:
            try:
                self._stream.write(text)
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Pass on what was kept back.

        Raises:
            OSError: as `write` does.
        """
        if not self._lost:
            try:
                self._stream.flush()
            except OSError as error:
                self._lose(error)

    def _lose(self, error: OSError) -> None:
        """Write nowhere from now on; the interpreter too flushes at its end what is kept back."""
        self._lost = True
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)
        if self._name and not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, self._name) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting_streams() -> Iterator[None]:
    """While the block lasts, the standard streams are open and outlast their readers; at its end they are flushed."""
    _open_closed()
    before = sys.stdin, sys.stdout, sys.stderr
    given = [stream or _opened(number) for number, stream in enumerate(before)]
    outlets = [Outlet(given[1], STDOUT), Outlet(given[2])]
    sys.stdin, (sys.stdout, sys.stderr) = given[0], (cast(TextIO, outlet) for outlet in outlets)
    try:
        yield
    finally:
        try:
            for outlet in outlets:
                outlet.flush()
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


def _open_closed() -> None:
    """Have no file that is opened later take the number of a standard stream, which children and libraries write to."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it takes the lowest number that is free


def _opened(number: int) -> TextIO:
    return cast(TextIO, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))
