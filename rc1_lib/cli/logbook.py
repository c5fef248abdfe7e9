"""The logbook: all that a command prints also goes to `logs/ops_<time>.log`, without colours and without secrets."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO, cast

from rc1_lib.errors import RC1Error
from rc1_lib.failpack import stamped
from rc1_lib.masking import conceal, mask, secrets

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Tee:
    """A text stream that passes on to another what it is given, and writes whole lines into the log.

    `beneath` is the stream itself, for what does not belong into a log (progress bars).
    """

    def __init__(self, beneath: TextIO, log: IO[str], lock: threading.Lock) -> None:
        """Wrap `beneath`; both streams of a process share `log` and `lock`."""
        self.beneath = beneath
        self._log, self._lock = log, lock
        self._hidden = secrets()
        self._pending = ""

    def write(self, text: str) -> int:
        """Print `text` and log the lines that it completes."""
        self.beneath.write(mask(text, self._hidden))
        with self._lock:
            *lines, self._pending = (self._pending + text).split("\n")
            self._record(lines)
        return len(text)

    def flush(self) -> None:
        """Flush the stream beneath."""
        self.beneath.flush()

    def finish(self) -> None:
        """Log what stands on the last, unfinished line."""
        with self._lock:
            self._record([self._pending] if self._pending else [])
            self._pending = ""

    def _record(self, lines: list[str]) -> None:
        for line in lines:
            self._log.write(conceal(_CONTROLS.sub("", line).rpartition("\r")[2], self._hidden) + "\n")
        self._log.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


@contextmanager
def logbook(workspace: Path) -> Iterator[Path]:
    """Log everything printed inside the block; gives the log's path.

    Raises:
        RC1Error: when the workspace cannot be written to.
    """
    path = stamped(workspace / "logs", "ops", ".log")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("a", encoding="utf-8")
    except OSError as error:
        raise RC1Error(
            f"--workspace {workspace}: cannot write the log there ({error.strerror}); name another folder"
        ) from None
    lock = threading.Lock()
    before = sys.stdout, sys.stderr
    tees = tuple(Tee(stream, log, lock) for stream in before)
    with log:
        sys.stdout, sys.stderr = (cast(TextIO, tee) for tee in tees)
        try:
            yield path
        finally:
            sys.stdout, sys.stderr = before
            for tee in tees:
                tee.finish()
