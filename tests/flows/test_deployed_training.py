"""`prefect deployment run rc1/train` on the bundled base: killed and restarted, same bytes.

A worker of a process pool starts the runs, as with `make serve`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL

from deployments.register import create_pool, register
from deployments.server import settings
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.conftest import Verdicts
from tests.ticketed import ticketed

from .trainings import checkpoint_hashes, logged, start

POOL = "rc1-engines"
SMALL = (
    "base_model=models/embedded", "training.max_tokens=336", "rollout_len=128", "lr=0.001", "training.shards=2",
    "training.warm_start.steps=2", "training.warm_start.batch_size=4",
)  # fmt: skip
"""The bundled base and a short warm start, in a run that otherwise takes seconds."""


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The deployments on the tests' server and a worker of their pool; returns the environment of both."""
    home = tmp_path_factory.mktemp("served")
    create_pool(POOL)
    register(home, POOL)
    environment = {**os.environ, **settings(home, str(PREFECT_API_URL.value()).removesuffix("/api"))}
    environment["PREFECT_WORKER_QUERY_SECONDS"] = "1"
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
    with subprocess.Popen(command, env=environment, cwd=PROJECT_ROOT) as process:
        yield environment
        process.terminate()


@pytest.fixture
def run_of(built: Run, verdicts: Verdicts, tmp_path: Path) -> Callable[..., Run]:
    """`run_of("alone")`: a ticket in a workspace of that name."""

    def make(name: str) -> Run:
        root = tmp_path / name
        shutil.copytree(built.workspace.root, root)
        return ticketed(root, built, verdicts, *SMALL, config=PROJECT_ROOT / "configs/local.yaml")

    return make


def deployed(run: Run, environment: dict[str, str], *flags: str) -> tuple[UUID, int]:
    """`prefect deployment run rc1/train` for a run's configuration: the flow run and the command's exit code."""
    parameters: dict[str, Any] = {
        "config": str(run.config_path), "overrides": list(run.overrides), "workspace": str(run.workspace.root),
        "evaluate": False,
    }  # fmt: skip
    before = {one.id for one in trainings()}
    command = [sys.executable, "-m", "prefect", "deployment", "run", "rc1/train", "--params", json.dumps(parameters)]
    ended = subprocess.run([*command, *flags], env=environment, cwd=PROJECT_ROOT, check=False)
    (made,) = {one.id for one in trainings()} - before
    return made, ended.returncode


def trainings() -> list[FlowRun]:
    """All flow runs of `rc1/train` so far."""
    with get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name("rc1/train").id
        return [one for one in client.read_flow_runs(limit=200) if one.deployment_id == deployment]


def seen(flow_run: UUID) -> FlowRun:
    with get_client(sync_client=True) as client:
        return client.read_flow_run(flow_run)


def until(condition: Callable[[], bool], otherwise: Callable[[], object], seconds: float = 1200) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.01)


def kill_after(step: int, run: Run, flow_run: UUID) -> None:
    """kill -9 the training process after this many steps; the worker reports it to the server."""
    metrics = run.workspace.path("reports/metrics.jsonl")
    until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= step, lambda: seen(flow_run).state)
    pid = int(str(seen(flow_run).infrastructure_pid).rpartition(":")[2])
    os.kill(pid, signal.SIGKILL)
    until(lambda: (state := seen(flow_run).state) is not None and state.is_final(), lambda: seen(flow_run).state)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_killed_deployed_run_resumes_to_the_same_bytes(run_of: Callable[..., Run], worker: dict[str, str]) -> None:
    alone, killed = run_of("alone"), run_of("killed")
    assert start(alone, config=str(alone.config_path)).is_completed()
    first, _ = deployed(killed, worker)
    kill_after(3, killed, first)
    second, code = deployed(killed, worker, "--watch")
    states = [state.name for one in (first, second) if (state := seen(one).state) is not None]
    assert (states, code) == (["Crashed", "PolicyTrained"], 0)
    assert checkpoint_hashes(killed) == checkpoint_hashes(alone) and len(checkpoint_hashes(alone)) == 2
    assert logged(killed) == [1, 2, 3, 4]
