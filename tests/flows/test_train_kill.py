"""A training killed at random moments and started again ends with the bytes of one that nothing disturbed."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL

from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import steps
from tests.forks import Fork, this_interpreter
from tests.once import copied

from .trainings import RUN, Ended, logged, prints

pytestmark = pytest.mark.timeout(1800)  # several processes, one behind the other

SEED = 20250820
"""Of the moments; they hang on how far the training has come, so that every kill hits it at work."""


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_at_work(flow: Fork, run: Run, logged_before: int, step: int) -> None:
    """Kill the flow once it has logged something of its own and `step` steps are measured."""
    log, metrics = run.workspace.path("logs/train.log"), run.workspace.path("reports/metrics.jsonl")
    while lines(log) == logged_before or lines(metrics) < step:
        assert flow.poll() is None, f"it was to be killed at work, and has ended: {flow.told()}"
        time.sleep(0.01)
    assert flow.kill() == -signal.SIGKILL


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.long)])
def test_a_flow_killed_at_any_moment_ends_with_the_same_bytes(
    kills: int, done: Ended, opened: Run, tmp_path: Path
) -> None:
    run, moments = copied(opened, tmp_path / "workspace"), random.Random(SEED + kills)
    forks = this_interpreter(tmp_path / "forks")
    place = (PREFECT_API_URL.value(), tmp_path / "storage", run.workspace.root, *run.overrides)
    for _ in range(kills):
        there = max(steps(run.workspace.path(RUN)), default=0)
        logged_before = lines(run.workspace.path("logs/train.log"))
        flow = forks.start("tests.flows.trainings.as_a_process", *place)
        kill_at_work(flow, run, logged_before, there + moments.randint(0, 3 - there))
    flow = forks.start("tests.flows.trainings.as_a_process", *place)
    assert flow.wait() == 0, flow.told()
    assert prints(run) == prints(done.run)
    assert logged(run) == [1, 2, 3, 4]
