"""One key at a time: from a terminal without a return key, from a pipe character by character."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

_WAIT_S = 0.25
Keyboard = Callable[[], str]
"""The next non-blank key; an empty text at the end of the input."""


@contextmanager
def keyboard(stream: TextIO) -> Iterator[Keyboard]:
    """Read keys from a stream; at the end of the block a terminal is restored, however the block ends."""
    if not stream.isatty():
        yield lambda: _next(lambda: stream.read(1))
        return
    import termios
    import tty

    terminal = stream.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        yield lambda: _next(lambda: _next_key(terminal))
    finally:
        # At once: waiting for the output would hang if nobody reads it any more.
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _next_key(terminal: int) -> str:
    # Ctrl-C ends a wait at once, but a read continues if a library's signal handler restarts system calls (polars).
    # A Ctrl-C just before a wait does not end it, so waits are kept short.
    while not select.select([terminal], [], [], _WAIT_S)[0]:
        pass
    return os.read(terminal, 1).decode("ascii", "replace")


def _next(read: Callable[[], str]) -> str:
    while (key := read()) and key.isspace():
        pass
    return "" if key == "\x04" else key.lower()
