"""A training killed at random moments and started again ends with the bytes of one that nothing disturbed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL

from rc1_lib.artifacts import PROJECT_ROOT
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.names import steps

from .trainings import RUN, Ended, copied, logged, prints

pytestmark = pytest.mark.timeout(1800)  # several processes, one behind the other

SEED = 20250820
"""Of the moments; they hang on how far the training has come, so that every kill hits it at work."""

PROGRAM = """
import sys
from flows.train import train
state = train(workspace=sys.argv[1], overrides=sys.argv[2:], evaluate=False, return_state=True)
print(state.name, state.message)
sys.exit(0 if state.is_completed() else 1)
"""


def process(run: Run, storage: Path) -> subprocess.Popen[str]:
    """The flow in a process of its own, as a worker starts it."""
    environment = {
        **os.environ, "PYTHONPATH": str(PROJECT_ROOT), "PREFECT_API_URL": str(PREFECT_API_URL.value()),
        "PREFECT_LOCAL_STORAGE_PATH": str(storage), "PREFECT_LOGGING_TO_API_ENABLED": "false",
    }  # fmt: skip
    command = [sys.executable, "-c", PROGRAM, str(run.workspace.root), *run.overrides]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def kill_at_work(flow: subprocess.Popen[str], run: Run, logged_before: int, step: int) -> None:
    """Kill the flow once it has logged something of its own and `step` steps are measured."""
    log, metrics = run.workspace.path("logs/train.log"), run.workspace.path("reports/metrics.jsonl")
    while lines(log) == logged_before or lines(metrics) < step:
        assert flow.poll() is None, f"it was to be killed at work, and has ended: {flow.communicate()[0]}"
        time.sleep(0.01)
    flow.kill()
    flow.communicate()
    assert flow.returncode == -signal.SIGKILL


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.long)])
def test_a_flow_killed_at_any_moment_ends_with_the_same_bytes(
    kills: int, done: Ended, opened: Run, tmp_path: Path
) -> None:
    run, moments = copied(opened, tmp_path / "workspace"), random.Random(SEED + kills)
    for _ in range(kills):
        there = max(steps(run.workspace.path(RUN)), default=0)
        flow, logged_before = process(run, tmp_path / "storage"), lines(run.workspace.path("logs/train.log"))
        kill_at_work(flow, run, logged_before, there + moments.randint(0, 3 - there))
    flow = process(run, tmp_path / "storage")
    told, _ = flow.communicate(timeout=600)
    assert flow.returncode == 0, told
    assert prints(run) == prints(done.run)
    assert logged(run) == [1, 2, 3, 4]
