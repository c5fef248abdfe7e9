"""Workers of the tests that are forked from the one that hands out tests, once it has imported what they all import.

torch, transformers, trl and Prefect take 8 s of CPU to import; each worker of pytest-xdist would do that for itself.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import random
import signal
import sys
import traceback
from collections.abc import Collection, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest
from execnet import XSpec, gateway_io
from execnet.gateway_base import ExecModel, Popen2IO

PROJECT_ROOT = Path(__file__).parents[1]


class Worker(Popen2IO):
    """A forked worker, as execnet sees a process that it has started."""

    def __init__(self, pid: int, to_worker: int, from_worker: int, execmodel: ExecModel) -> None:
        super().__init__(os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"), execmodel)
        self.pid = pid

    def wait(self) -> None:
        """Wait until it has ended."""
        os.waitpid(self.pid, 0)

    def kill(self) -> None:
        """End it at once."""
        os.kill(self.pid, signal.SIGKILL)


def import_tests(arguments: Sequence[str]) -> None:
    """Import the test modules that pytest was asked for, and with them all that they import."""
    for argument in arguments:
        path = PROJECT_ROOT / argument.partition("::")[0]
        for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
            try:
                importlib.import_module(".".join(file.relative_to(PROJECT_ROOT).with_suffix("").parts))
            except (Exception, pytest.skip.Exception):  # the worker that collects it says what is wrong with it
                continue


def _work(requests: int, replies: int, captured: Collection[int]) -> NoReturn:
    """In the new process: be what execnet finds where it has started an interpreter."""
    try:
        random.seed()
        for one in captured:  # what is logged to streams of the time of the import is not for the parent to show
            os.dup2(os.open(os.devnull, os.O_WRONLY), one)
        os.dup2(requests, 0)
        os.dup2(replies, 1)
        sys.stdin, sys.stdout = os.fdopen(0, "r", closefd=False), os.fdopen(1, "w", closefd=False)
        sys.modules["__main__"] = main = ModuleType("__main__")  # what multiprocessing would import in its processes
        exec(eval(sys.stdin.readline()), vars(main))
    except BaseException:  # whatever it is: a fork must end here, not go on as a second run of the tests
        traceback.print_exc()
    finally:
        try:
            atexit._run_exitfuncs()
        finally:
            os._exit(0)


def _fork(inherited: Collection[int], captured: Collection[int]) -> tuple[int, int, int]:
    """A worker's number, where it is written to and where it is read from; it closes what it has inherited."""
    requests, to_worker = os.pipe()
    from_worker, replies = os.pipe()
    pid = os.fork()
    if pid == 0:
        for one in (*inherited, to_worker, from_worker):
            os.close(one)
        _work(requests, replies, captured)
    os.close(requests)
    os.close(replies)
    return pid, to_worker, from_worker


def fork_workers(config: pytest.Config, specs: Sequence[XSpec]) -> None:
    """Have execnet find these workers forked. One that has to be replaced is an interpreter of its own again."""
    import_tests(config.args)
    if "rc1_lib.provenance.code" in sys.modules:
        importlib.import_module("rc1_lib.provenance.code").code_sha256()
    if "flows" in sys.modules:
        importlib.import_module("tests.prefect_server")
    gc.freeze()
    ready: list[tuple[int, int, int]] = []
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.resume_global_capture()
    captured = {stream.fileno() for stream in (sys.stdout, sys.stderr)} - {1, 2}
    capture.suspend_global_capture(in_=True)
    for _ in specs:
        ready.append(_fork([end for _, *ends in ready for end in ends], captured))
    start = gateway_io.create_io

    def create_io(spec: XSpec, execmodel: ExecModel) -> Popen2IO:
        return Worker(*ready.pop(0), execmodel) if ready else start(spec, execmodel)

    gateway_io.create_io = create_io
