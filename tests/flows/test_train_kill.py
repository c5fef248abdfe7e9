"""A training killed at random moments and restarted ends with the bytes of an undisturbed one."""

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

from .trainings import RUN, Ended, checkpoint_hashes, logged

pytestmark = pytest.mark.timeout(1800)  # several processes, one after the other

SEED = 20250820
"""Seed of the moments, which depend on the training's progress, so that every kill hits a working process."""


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_at_work(flow: Fork, run: Run, logged_before: int, step: int) -> None:
    """Wait for the flow's first own log line and `step` measured steps."""
    log, metrics = run.workspace.path("logs/train.log"), run.workspace.path("reports/metrics.jsonl")
    while lines(log) == logged_before or lines(metrics) < step:
        assert flow.poll() is None, f"the flow ended before it was killed: {flow.read_output()}"
        time.sleep(0.01)


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.long)])
def test_flow_killed_at_any_moment_resumes_to_the_same_bytes(
    kills: int, done: Ended, opened: Run, tmp_path: Path
) -> None:
    run, moments = copied(opened, tmp_path / "workspace"), random.Random(SEED + kills)
    forks = this_interpreter(tmp_path / "forks")
    place = (PREFECT_API_URL.value(), tmp_path / "storage", run.workspace.root, *run.overrides)
    for _ in range(kills):
        there = max(steps(run.workspace.path(RUN)), default=0)
        logged_before = lines(run.workspace.path("logs/train.log"))
        flow = forks.start("tests.flows.trainings.as_a_process", *place)
        wait_at_work(flow, run, logged_before, there + moments.randint(0, 3 - there))
        assert flow.kill() == -signal.SIGKILL
    flow = forks.start("tests.flows.trainings.as_a_process", *place)
    assert flow.wait() == 0, flow.read_output()
    assert checkpoint_hashes(run) == checkpoint_hashes(done.run)
    assert logged(run) == [1, 2, 3, 4]


def test_terminated_flow_loses_no_step_and_resumes_to_the_same_bytes(done: Ended, opened: Run, tmp_path: Path) -> None:
    run = copied(opened, tmp_path / "workspace")
    place = (PREFECT_API_URL.value(), tmp_path / "storage", run.workspace.root, *run.overrides)
    forks = this_interpreter(tmp_path / "forks")
    flow = forks.start("tests.flows.trainings.as_a_process", *place)
    wait_at_work(flow, run, 0, 1)
    flow.terminate()
    assert flow.wait() == -signal.SIGTERM
    saved = max(steps(run.workspace.path(RUN)))
    assert saved == logged(run)[-1] < 4
    flow = forks.start("tests.flows.trainings.as_a_process", *place)
    assert flow.wait() == 0, flow.read_output()
    assert checkpoint_hashes(done.run).items() <= checkpoint_hashes(run).items()
