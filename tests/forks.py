"""Processes for tests that kill them, forked from an interpreter that has imported what they need.

torch, transformers and peft take longer to import than such a test works. So each worker forks a process once
everything is collected and before any test has run (`be_ready`), which forks whatever tests ask for: nothing has to be
imported a second time, and no thread of a test is there whose locks could be inherited. What must not have imported
anything of ours is forked from an interpreter of its own (`another_interpreter`).
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
"""Found out here: a test wants to see what else imports something of ours."""


@dataclass(frozen=True)
class Fork:
    """A process that was started, and where it writes what it prints."""

    pid: int
    output: Path

    @property
    def _ended(self) -> Path:
        return self.output.with_suffix(".ended")

    def poll(self) -> int | None:
        """How it ended, as `subprocess` counts; None while it runs."""
        return int(self._ended.read_text()) if self._ended.exists() else None

    def wait(self, seconds: float = 800.0) -> int:
        """Wait until it has ended, and say how."""
        until = time.monotonic() + seconds
        while (code := self.poll()) is None:
            assert time.monotonic() < until, f"it has not ended: {self.told()}"
            time.sleep(0.005)  # it is no child of this process, so there is nothing here to wait for but its file
        return code

    def kill(self) -> int:
        """Kill it, unless it has ended by itself, and say how it ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended by itself, and its file says so in a moment
                os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def told(self) -> str:
        """What it has printed so far."""
        return self.output.read_text()


@dataclass(frozen=True)
class Forks:
    """Where processes are forked; what they print goes into files of a folder."""

    folder: Path
    requests: IO[str]
    replies: IO[str]

    def start(self, function: str, *arguments: object, environment: Mapping[str, str] | None = None) -> Fork:
        """Call `module.function` with these arguments, as strings, in a process of its own.

        Args:
            function: the module's name and the function's.
            arguments: what it is called with.
            environment: beside that of this process.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        output = self.folder / f"{len(list(self.folder.glob('*.txt'))) + 1}.txt"
        output.touch()
        whole = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), **(environment or {})}
        call = {"function": function, "arguments": [str(one) for one in arguments], "output": str(output)}
        print(json.dumps({**call, "environment": whole}), file=self.requests, flush=True)
        pid = self.replies.readline()
        assert pid, "where it was to be forked has ended; what it said stands above"
        return Fork(int(pid), output)


@contextmanager
def another_interpreter(folder: Path) -> Iterator[Forks]:
    """Fork from an interpreter of its own that has imported nothing of ours but this module."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.forks"], cwd=PROJECT_ROOT, text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        yield Forks(folder, process.stdin, process.stdout)
        process.stdin.close()


_ready: tuple[int, IO[str], IO[str]] | None = None
"""The process that forks for this one: its number, and where it is asked and answers."""


def be_ready() -> None:
    """Fork the process that `this_interpreter` forks from. To be called before any test has run."""
    global _ready
    asked, asks = os.pipe()
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:  # whatever happens, it is not to go on as a second run of the tests
            os.close(asks)
            os.close(told)
            os.chdir(PROJECT_ROOT)
            _serve(os.fdopen(asked), os.fdopen(tells, "w"))
        finally:
            os._exit(0)
    os.close(asked)
    os.close(tells)
    _ready = pid, os.fdopen(asks, "w"), os.fdopen(told)


def no_more() -> None:
    """End what `be_ready` has started."""
    global _ready
    if _ready is not None:
        pid, requests, replies = _ready
        requests.close()
        os.waitpid(pid, 0)
        replies.close()
        _ready = None


def this_interpreter(folder: Path) -> Forks:
    """Fork from what this interpreter was before its first test: all that was collected is imported."""
    assert _ready is not None, "nobody has called be_ready"
    _, requests, replies = _ready
    return Forks(folder, requests, replies)


def _call(function: str, arguments: list[str], output: str, environment: dict[str, str]) -> None:
    """In the new process: call the function, and end."""
    gc.enable()
    random.seed()  # as a process that was started has it
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
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # whatever it is, even an interrupt: a fork must end here, not go on as the interpreter
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _attend(request: dict[str, Any], replies: IO[str]) -> None:
    """Fork what was asked for, tell its number, and write down how it ended."""
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
    """Fork whatever is asked for, several at a time if need be; what nobody waited for ends with the tests."""
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
