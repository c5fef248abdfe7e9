"""Standard streams that survive their reader's exit, mask secrets, and copy all output into the log.

Without this, a command would stop half way, with an arbitrary exit code, when its reader exits early
(`rc1 ... | head -1`), a stream is closed (`>&-`), the disk is full, or the terminal's encoding lacks a character of a
path. It could also write into a file that happened to get the number of a closed stream.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TextIO, cast

from rc1_lib.errors import RC1Error
from rc1_lib.failpack import stamped
from rc1_lib.masking import conceal, conceal_argument, mask, secrets

STDOUT = "standard output"
"""Its name in error messages."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk."""
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and line feed, and marks that reorder a line."""


def visible(text: str) -> str:
    """Return a text with control characters as escapes: on a terminal a dialogue could hide or replace lines."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class LastingStream:
    """A stream that accepts writes after its reader has exited, and discards them.

    If it has a name, any other write error is raised once, as an `OSError` with that name.
    """

    def __init__(self, stream: TextIO, name: str = "") -> None:
        self._stream, self._name, self._lost = stream, name, False

    def write(self, text: str) -> int:
        """Write `text`; discard it once the stream has failed."""
        self._unless_lost(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream's buffer."""
        self._unless_lost(self._stream.flush)

    def _unless_lost(self, do: Callable[[], object]) -> None:
        if self._lost:
            return
        try:
            do()
        except OSError as error:
            self._lost = True
            with suppress(OSError, ValueError):  # redirect to /dev/null, since the interpreter flushes at exit too
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            if self._name and not isinstance(error, BrokenPipeError):
                raise OSError(error.errno, error.strerror, self._name) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Inside the block the standard streams are open and survive their readers; at its end they are flushed."""
    for number in range(3):  # else a file opened later gets a closed stream's number, to which libraries write
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # `open` takes the lowest free number
    before = sys.stdin, sys.stdout, sys.stderr
    given = [
        stream or os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)
        for number, stream in enumerate(before)
    ]
    for stream in given[1:]:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    streams = [LastingStream(given[1], STDOUT), LastingStream(given[2])]
    sys.stdin, (sys.stdout, sys.stderr) = given[0], (cast(TextIO, stream) for stream in streams)
    try:
        yield
    finally:
        try:
            for stream in streams:
                stream.flush()
        finally:
            sys.stdin, sys.stdout, sys.stderr = before


class LoggedStream:
    """A stream that masks secrets and copies whole lines, without colours, into logs that streams share.

    Attributes:
        lost: why lines could not be logged; empty if all were.
    """

    def __init__(self, stream: TextIO, logs: Sequence[IO[str]], lock: threading.Lock) -> None:
        self.unlogged = stream
        self._logs, self._lock = logs, lock
        self._hidden = secrets()
        self._pending = ""
        self.lost = ""

    def write(self, text: str) -> int:
        """Print `text` and log the lines that it completes."""
        self.unlogged.write(mask(text, self._hidden))
        with self._lock:
            *lines, self._pending = (self._pending + text).split("\n")
            self._record(lines)
        return len(text)

    def finish(self) -> None:
        """Log the last line if it lacks a newline."""
        with self._lock:
            self._record([self._pending] if self._pending else [])
            self._pending = ""

    def _record(self, lines: list[str]) -> None:
        try:
            for log in self._logs:
                for line in lines:
                    log.write(conceal(_CONTROLS.sub("", line).rpartition("\r")[2], self._hidden) + "\n")
                log.flush()
        except OSError as error:  # the command goes on; `logbook` says at its end that lines are lost
            self.lost = error.strerror or str(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unlogged, name)


@contextmanager
def logbook(workspace: Path, also: str = "") -> Iterator[Path]:
    """Log the command and all output inside the block to `logs/ops_<time>.log`; yields the log's path.

    Args:
        workspace: the folder with `logs`.
        also: a second log below it, to which the same lines are added.

    Raises:
        RC1Error: when the workspace cannot be written to.
    """
    path = stamped(workspace / "logs", "ops", ".log")
    logs = list[IO[str]]()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for place in (path, *([workspace / also] if also else [])):
            logs.append(place.open("a", encoding="utf-8", errors="backslashreplace"))
            print("$", typed(), file=logs[-1], flush=True)
    except OSError as error:
        for log in logs:  # the disk is full
            with suppress(OSError):
                log.close()
        path.unlink(missing_ok=True)
        room = "free space, or " if error.errno in FULL else ""
        raise RC1Error(
            f"--workspace {workspace}: cannot write the log there ({error.strerror}); {room}choose another folder"
        ) from None
    lock = threading.Lock()
    before = sys.stdout, sys.stderr
    logged = tuple(LoggedStream(stream, logs, lock) for stream in before)
    sys.stdout, sys.stderr = (cast(TextIO, stream) for stream in logged)
    try:
        yield path
    finally:
        sys.stdout, sys.stderr = before
        for stream in logged:
            stream.finish()
        for log in logs:
            with suppress(OSError):
                log.close()
        if lost := next((stream.lost for stream in logged if stream.lost), ""):
            print(f"rc1: {path}: lacks lines, they could not be written ({lost})", file=sys.stderr)


def typed() -> str:
    """Return this command line as typed, without secrets."""
    hidden = secrets()
    return shlex.join(["rc1", *(conceal_argument(argument, hidden) for argument in sys.argv[1:])])


def terminal() -> TextIO:
    """Return standard error without the log, for progress bars."""
    return unlogged(sys.stderr)


def unlogged(stream: TextIO) -> TextIO:
    """Return a stream without its log and its mask, for what must stand in no file."""
    return cast(TextIO, getattr(stream, "unlogged", stream))
