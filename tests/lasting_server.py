"""A server that is there as long as the next test needs it, and again where a later one does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

Server = Callable[[], AbstractContextManager[None]]


class LastingServer:
    """A server of one worker: it goes while nobody needs it, however the worker's tests are ordered."""

    def __init__(self) -> None:
        """There is none before `begin`."""
        self._start: Server | None = None
        self._running = ExitStack()
        self._up = False

    def begin(self, start: Server) -> None:
        """Start it now, and in this way whenever it is needed again."""
        self._start = start
        self.needed(True)

    def needed(self, wanted: bool) -> None:
        """Begin it again where it has left and is wanted, end it where it is not."""
        if self._up == wanted or self._start is None:
            return
        if wanted:
            self._running.enter_context(self._start())
        else:
            self._running.close()
        self._up = wanted

    def end(self) -> None:
        """End it for good."""
        self.needed(False)
        self._start = None
