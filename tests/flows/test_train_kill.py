"""A training killed at random moments and started again ends with the bytes of one that nothing disturbed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL

from rc1_lib.artifacts import PROJECT_ROOT
from rc1_lib.run import Run

from .trainings import Ended, copied, logged, prints

pytestmark = [
    pytest.mark.xdist_group("prefect"),
    pytest.mark.timeout(580),
]  # one server; several processes, one behind the other

KILLS = int(os.environ.get("RC1_TEST_KILLS", "2"))
"""How often; more of them for whoever has the time."""

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


def test_a_flow_killed_at_any_moment_ends_with_the_same_bytes(done: Ended, opened: Run, tmp_path: Path) -> None:
    run = copied(opened, tmp_path / "workspace")
    log, moments = run.workspace.path("logs/train.log"), random.Random()
    for _ in range(KILLS):
        size = log.stat().st_size if log.exists() else 0
        flow = process(run, tmp_path / "storage")
        while flow.poll() is None and (not log.exists() or log.stat().st_size == size):
            time.sleep(0.02)
        time.sleep(moments.uniform(0.0, 1.5))
        flow.kill()
        flow.communicate()
    flow = process(run, tmp_path / "storage")
    told, _ = flow.communicate(timeout=120)
    assert flow.returncode == 0, told
    assert prints(run) == prints(done.run)
    assert logged(run) == [1, 2, 3, 4]
