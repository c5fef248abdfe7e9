"""Processes for tests that kill them, forked from an interpreter that has already imported what they need.

Importing torch, transformers and peft takes longer than such a test. So each worker forks a process after collection
and before its first test (`start_forking`). That process forks the ones that tests ask for: they need not import
anything again, and cannot inherit a lock of a test's thread. A process that must not have imported anything of ours is
forked from a separate interpreter (`another_interpreter`).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

PROJECT_ROOT = Path(__file__).parents[1]
"""Computed here, since a test checks which imports load something of ours."""


@dataclass(frozen=True)
class Fork:
    """A started process, and the file of its output."""

    pid: int
    output: Path

    @property
    def _ended(self) -> Path:
        return self.output.with_suffix(".ended")

    def poll(self) -> int | None:
        """The exit code, as in `subprocess`; None while it runs."""
        return int(self._ended.read_text()) if self._ended.exists() else None

    def wait(self, seconds: float = 800.0) -> int:
        """Wait until it has ended; gives the exit code."""
        until = time.monotonic() + seconds
        while (code := self.poll()) is None:
            assert time.monotonic() < until, f"it has not ended: {self.read_output()}"
            time.sleep(0.005)  # it is not a child of this process, so that only its file shows the end
        return code

    def kill(self) -> int:
        """Kill it, unless it has already ended; gives the exit code."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended, and its file will say so
                os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def terminate(self) -> None:
        """Send SIGTERM, as a scheduler does."""
        os.kill(self.pid, signal.SIGTERM)

    def read_output(self) -> str:
        """Its output so far."""
        return self.output.read_text()


@dataclass(frozen=True)
class Forks:
    """A connection to a process that forks; the output of forked processes goes to files of a folder."""

    folder: Path
    requests: IO[str]
    replies: IO[str]

    def start(self, function: str, *arguments: object, environment: Mapping[str, str] | None = None) -> Fork:
        """Call a function in a new process.

        Args:
            function: `module.function`.
            arguments: its arguments, which become strings.
            environment: variables in addition to those of this process.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        output = self.folder / f"{len(list(self.folder.glob('*.txt'))) + 1}.txt"
        output.touch()
        whole = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), **(environment or {})}
        call = {"function": function, "arguments": [str(one) for one in arguments], "output": str(output)}
        print(json.dumps({**call, "environment": whole}), file=self.requests, flush=True)
        pid = self.replies.readline()
        assert pid, "the process that forks has ended; see its output above"
        return Fork(int(pid), output)


@contextmanager
def another_interpreter(folder: Path) -> Iterator[Forks]:
    """Fork from a separate interpreter, which has imported only this module of ours."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.forks"], cwd=PROJECT_ROOT, text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        yield Forks(folder, process.stdin, process.stdout)
        process.stdin.close()


_ready: tuple[int, IO[str], IO[str]] | None = None
"""The process that forks for this one: its PID, and the pipes for requests and replies."""


def start_forking() -> None:
    """Fork the process that `this_interpreter` uses. Call it before the first test."""
    global _ready
    request_end, requests = os.pipe()
    replies, reply_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:  # whatever happens, the child must not continue as a second run of the tests
            os.close(requests)
            os.close(replies)
            os.chdir(PROJECT_ROOT)
            _serve(os.fdopen(request_end), os.fdopen(reply_end, "w"))
        finally:
            os._exit(0)
    os.close(request_end)
    os.close(reply_end)
    _ready = pid, os.fdopen(requests, "w"), os.fdopen(replies)


def stop_forking() -> None:
    """End the process that `start_forking` started."""
    global _ready
    if _ready is not None:
        pid, requests, replies = _ready
        requests.close()
        os.waitpid(pid, 0)
        replies.close()
        _ready = None


def this_interpreter(folder: Path) -> Forks:
    """Fork from this interpreter's state before its first test, with all collected modules imported."""
    assert _ready is not None, "start_forking was not called"
    _, requests, replies = _ready
    return Forks(folder, requests, replies)


def _call(function: str, arguments: list[str], output: str, environment: dict[str, str]) -> None:
    """Call the function in the new process, and end it."""
    gc.enable()
    random.seed()  # as in a process that is started normally
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), 1)
    os.dup2(1, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in ((0, "r"), (1, "w"), (2, "w")))
    module, _, name = function.rpartition(".")
    code = 0
    try:
        getattr(importlib.import_module(module), name)(*arguments)
    except SystemExit as end:  # like the interpreter: text is printed and means 1
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:  # even an interrupt: a fork must end here, and not continue as the interpreter
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _attend(request: dict[str, Any], replies: IO[str]) -> None:
    """Fork the requested process, reply with its PID, and write its exit code to a file."""
    pid = os.fork()
    if pid == 0:
        _call(**request)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGKILL))
    print(pid, file=replies, flush=True)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    output = Path(request["output"])
    unfinished = output.with_suffix(".unfinished")
    unfinished.write_text(str(code))
    unfinished.rename(output.with_suffix(".ended"))


def _serve(requests: IO[str], replies: IO[str]) -> None:
    """Fork what is requested, several at a time if needed; processes that still run end with the tests."""
    attendants = set()
    for line in requests:
        attendant = os.fork()
        if attendant == 0:
            try:
                _attend(json.loads(line), replies)
            finally:
                os._exit(0)
        attendants.add(attendant)
        attendants -= {one for one in attendants if os.waitpid(one, os.WNOHANG)[0]}
    for one in attendants:
        os.kill(one, signal.SIGTERM)
        os.waitpid(one, 0)


if __name__ == "__main__":
    _serve(sys.stdin, sys.stdout)
