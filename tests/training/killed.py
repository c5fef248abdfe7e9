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
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from unittest.mock import patch

import psutil

from rc1_lib.judge.calls import Line
from tests.forks import Forks

FEW = {"train": (0, 1, 3), "warm": (0, 0, 1)}
"""The number of steps measured, or folders begun, before each kill: at once, halfway, near the end."""
MANY = 60
WORKERS_END_S = 300
LOOK_REPLIES = 20
"""Replies that a check of the judge has received when it is killed."""


def until_done(forks: Forks, what: str, workspace: Path, *overrides: str, many: bool = False) -> int:
    """Run `what` (`train` to step 4, or the `warm` start) in `workspace`; returns how often it was killed."""
    done = forks.start("tests.training.killed.main", what, "many" if many else "few", workspace, *overrides)
    assert done.wait() == 0, done.read_output()[-2000:]
    return int(done.read_output().splitlines()[-1])


def work_of(what: str, workspace: Path, overrides: tuple[str, ...]) -> Callable[[], object]:
    """Return the work that may be killed, after doing all that comes before it."""
    import torch

    from rc1_lib.training.base_model import load_tokenizer
    from rc1_lib.training.chat_format import ChatFormat
    from rc1_lib.training.models import base_name, model_section
    from rc1_lib.training.ppo_run import advance, prepare
    from rc1_lib.training.rows import select_rows
    from rc1_lib.training.warm_start import reference_of
    from tests.training.tiny_world import tiny_run

    torch.set_num_threads(1)
    run = tiny_run(workspace, *overrides)
    if what == "train":
        prepared = prepare(run)
        return lambda: advance(prepared, run.config.seeds[0], 4, lambda _: None)
    form = ChatFormat(load_tokenizer(model_section(run.config, base_name(run.config, run.workspace))))
    rows = select_rows(run, form).train
    return lambda: reference_of(run, rows, form)


def progress_of(what: str, workspace: Path) -> int:
    """Count the steps that were measured, or the folders that were begun."""
    if what == "warm":
        return len(list(workspace.glob("checkpoints/.new-*")))
    metrics = workspace / "reports/metrics.jsonl"
    return metrics.read_bytes().count(b"\n") if metrics.exists() else 0


def few(what: str, workspace: Path) -> Iterator[Callable[[BaseProcess], None]]:
    """Yield waits before a kill: each ends soon after a count of `FEW`, the last at the end of the work."""
    rng = random.Random(11)
    for wanted in FEW[what]:

        def wait(process: BaseProcess, wanted: int = wanted) -> None:
            while progress_of(what, workspace) < wanted and process.is_alive():
                time.sleep(0.001)  # polled from outside: reporting from inside would change the work
            process.join(rng.uniform(0.01, 0.1))

        yield wait
    yield BaseProcess.join


def many() -> Iterator[Callable[[BaseProcess], None]]:
    """Yield waits of random length. Later ones are longer, so that kills hit both steps and writes."""
    rng = random.Random(11)
    for kills in range(MANY):
        yield lambda process, most=0.6 * (1 + kills): process.join(rng.uniform(0.05, most))


def score_and_be_killed(root: str, *overrides: str) -> None:
    """Let the judge score a step, and die before the result is used."""
    from rc1_lib.run import open_run
    from rc1_lib.training.episode_judge import EpisodeJudge
    from tests.judge.bench import dialogues

    run = open_run(profile="local", workspace=Path(root), overrides=overrides)
    EpisodeJudge(run).score(dialogues(2))
    os.kill(os.getpid(), signal.SIGKILL)


def score_and_be_killed_midway(root: str, *overrides: str) -> None:
    """Let the judge score a step, and die during the requests."""
    from rc1_lib.run import open_run
    from rc1_lib.training.episode_judge import EpisodeJudge
    from tests.judge.bench import dialogues

    with _killed_after(3):
        run = open_run(profile="local", workspace=Path(root), overrides=overrides)
        EpisodeJudge(run).score(dialogues(2))


def check_grades_and_be_killed(root: str, where: str, *overrides: str) -> None:
    """Ask the judge about its baseline, and die during the requests."""
    from rc1_lib.run import open_run
    from rc1_lib.training.judge_drifted import check_grades

    with _killed_after(LOOK_REPLIES):
        check_grades(open_run(profile="local", workspace=Path(root), overrides=overrides), where)


@contextmanager
def _killed_after(replies: int) -> Iterator[None]:
    """Kill the process within this block when the store holds that many replies."""
    from rc1_lib.judge.store import Store

    end, ended = Store.end, itertools.count(1)

    def end_and_count(self: Store, line: Line, **more: str) -> None:
        end(self, line, **more)
        if next(ended) == replies:
            os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(Store, "end", end_and_count):
        yield


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


def main(what: str, how: str, root: str, *overrides: str) -> None:
    """Print how often the work was killed before it finished."""
    workspace = Path(root)
    work = work_of(what, workspace, overrides)
    for kills, wait in enumerate(many() if how == "many" else few(what, workspace)):
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
