"""Processes for tests that kill them, forked from an interpreter of its own that has imported what they need.

torch, transformers and peft take longer to import than such a test works. Forks of the tests' own interpreter would
inherit locks of threads that other tests have started.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

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
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def told(self) -> str:
        """What it has printed so far."""
        return self.output.read_text()


class Forks:
    """The interpreter from which they are forked, one at a time."""

    def __init__(self, folder: Path, *modules: str, environment: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._count = folder, 0
        whole = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT), **(environment or {})}
        self._interpreter = subprocess.Popen(
            [sys.executable, "-m", "tests.forks", *modules], cwd=PROJECT_ROOT, env=whole, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> Forks:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _fault: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._interpreter.communicate()

    def start(self, function: str, *arguments: object) -> Fork:
        """Call `module.function` with these arguments, as strings, in a process of its own."""
        assert self._interpreter.stdin is not None and self._interpreter.stdout is not None
        self._count += 1
        output = self._folder / f"{self._count}.txt"
        output.touch()
        print(
            json.dumps([function, [str(one) for one in arguments], str(output)]),
            file=self._interpreter.stdin,
            flush=True,
        )
        pid = self._interpreter.stdout.readline()
        assert pid, "the interpreter to fork from has ended; what it said stands above"
        return Fork(int(pid), output)


def _call(function: str, arguments: list[str], output: str) -> None:
    """In the new process: call the function, and end."""
    gc.enable()
    os.dup2(os.open(output, os.O_WRONLY | os.O_APPEND), 1)
    os.dup2(1, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
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


def _serve() -> None:
    """Import what is named, then fork whatever is asked for."""
    gc.disable()  # nothing of what is imported is garbage
    for module in sys.argv[1:]:
        importlib.import_module(module)
    gc.freeze()
    for line in sys.stdin:
        function, arguments, output = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _call(function, arguments, output)
        print(pid, flush=True)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        unfinished = Path(output).with_suffix(".unfinished")
        unfinished.write_text(str(code))
        unfinished.rename(Path(output).with_suffix(".ended"))


if __name__ == "__main__":
    _serve()
