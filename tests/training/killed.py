"""Runs a training in processes that are killed, until one of them finishes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

import psutil

from rc1_lib.judge.calls import Line
from tests.forks import Forks

MEASURED = (1, 3)
"""The number of steps measured before each kill: after the first, and near the end."""
WORKERS_END_S = 300


def until_done(forks: Forks, workspace: Path, *overrides: str) -> int:
    """Train to step 4 in `workspace`; returns how often the training was killed."""
    done = forks.start("tests.training.killed.main", workspace, *overrides)
    assert done.wait() == 0, done.read_output()[-2000:]
    return int(done.read_output().splitlines()[-1])


def work_of(workspace: Path, overrides: tuple[str, ...]) -> Callable[[], object]:
    """Return the work that may be killed, after doing all that comes before it."""
    import torch

    from rc1_lib.training.ppo_run import advance, prepare
    from tests.training.tiny_world import tiny_run

    torch.set_num_threads(1)
    run = tiny_run(workspace, *overrides)
    prepared = prepare(run)
    return lambda: advance(prepared, run.config.seeds[0], 4, lambda _: None)


def waits(workspace: Path) -> Iterator[Callable[[BaseProcess], None]]:
    """Yield waits before a kill: each ends soon after a count of `MEASURED`, the last at the end of the work."""
    rng, metrics = random.Random(11), workspace / "reports/metrics.jsonl"

    def measured() -> int:
        return metrics.read_bytes().count(b"\n") if metrics.exists() else 0

    for wanted in MEASURED:

        def wait(process: BaseProcess, wanted: int = wanted) -> None:
            while measured() < wanted and process.is_alive():
                time.sleep(0.001)  # polled from outside: reporting from inside would change the work
            process.join(rng.uniform(0.01, 0.1))

        yield wait
    yield BaseProcess.join


def score_and_be_killed_midway(root: str, *overrides: str) -> None:
    """Let the judge score a step, and die when the store holds three replies."""
    from rc1_lib.judge.store import Store
    from rc1_lib.run import open_run
    from rc1_lib.training.episode_judge import EpisodeJudge
    from tests.judge.bench import dialogues

    end, ended = Store.end, itertools.count(1)

    def end_and_count(self: Store, line: Line, **more: str) -> None:
        end(self, line, **more)
        if next(ended) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(Store, "end", end_and_count):
        EpisodeJudge(open_run(profile="local", workspace=Path(root), overrides=overrides)).score(dialogues(2))


def _wait_for_the_end_of(workers: list[psutil.Process]) -> None:
    """Wait until a killed training's workers have ended by themselves. Else their imports of torch pile up."""
    until = time.monotonic() + WORKERS_END_S
    while any(_runs(worker) for worker in workers):
        assert time.monotonic() < until, "workers outlived a killed training"
        time.sleep(0.05)


def _runs(worker: psutil.Process) -> bool:
    try:
        return worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def main(root: str, *overrides: str) -> None:
    """Print how often the work was killed before it finished."""
    workspace = Path(root)
    work = work_of(workspace, overrides)
    for kills, wait in enumerate(waits(workspace)):
        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        wait(process)
        if process.is_alive():
            workers = psutil.Process(process.pid).children()
            process.kill()
            _wait_for_the_end_of(workers)
        process.join()
        if process.exitcode == 0:
            print(f"\n{kills}")  # a killed child leaves half a line of progress
            return
        assert process.exitcode == -9, f"it was not killed and ended with {process.exitcode}"
    sys.exit("it never finished")
