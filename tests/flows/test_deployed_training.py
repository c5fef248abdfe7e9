"""`prefect deployment run rc1/train` on the bundled base: killed and restarted, same bytes.

Prefect's runner starts the runs, as with `rc1 serve`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun
from prefect.settings import PREFECT_API_URL

from deployments.server import settings
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.conftest import Verdicts
from tests.ticketed import ticketed

from .trainings import checkpoint_hashes, logged, start

_WORKS = """
import sys
from pathlib import Path
from deployments.serve import work
work(Path(sys.argv[1]), sys.argv[2])
"""
SMALL = (
    "base_model=models/embedded", "training.max_tokens=336", "rollout_len=128", "lr=0.001", "training.shards=2",
    "training.warm_start.steps=2", "training.warm_start.batch_size=4",
)  # fmt: skip
"""The bundled base and a short warm start, in a run that otherwise takes seconds."""


@dataclass(frozen=True)
class Worker:
    """What serves the deployments at the tests' server, and its environment."""

    process: psutil.Process
    environment: dict[str, str]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """The deployments, served at the tests' server."""
    url = str(PREFECT_API_URL.value()).removesuffix("/api")
    environment = {**os.environ, **settings(tmp_path, url)}
    command = [sys.executable, "-c", _WORKS, str(tmp_path), url]
    output = tmp_path / "worker.txt"
    with (
        output.open("wb") as stream,
        subprocess.Popen(command, env=environment, cwd=PROJECT_ROOT, stdout=stream) as process,
    ):
        until(lambda: b"being served" in output.read_bytes(), output.read_text)
        yield Worker(psutil.Process(process.pid), environment)
        process.terminate()


@pytest.fixture
def run_of(built: Run, verdicts: Verdicts, tmp_path: Path) -> Callable[..., Run]:
    """`run_of("alone")`: a ticket in a workspace of that name."""

    def make(name: str) -> Run:
        root = tmp_path / name
        shutil.copytree(built.workspace.root, root)
        return ticketed(root, built, verdicts, *SMALL, config=PROJECT_ROOT / "configs/local.yaml")

    return make


def deployed(run: Run, worker: Worker, *flags: str) -> tuple[UUID, int]:
    """`prefect deployment run rc1/train` for a run's configuration: the flow run and the command's exit code."""
    parameters: dict[str, Any] = {
        "config": str(run.config_path), "overrides": list(run.overrides), "workspace": str(run.workspace.root),
        "evaluate": False,
    }  # fmt: skip
    before = {one.id for one in trainings()}
    command = [sys.executable, "-m", "prefect", "deployment", "run", "rc1/train", "--params", json.dumps(parameters)]
    ended = subprocess.run([*command, *flags], env=worker.environment, cwd=PROJECT_ROOT, check=False)
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


def kill_after(step: int, run: Run, flow_run: UUID, worker: Worker) -> None:
    """kill -9 the training process after this many steps; the runner reports it to the server."""
    metrics = run.workspace.path("reports/metrics.jsonl")
    until(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= step, lambda: seen(flow_run).state)
    (training,) = (one for one in worker.process.children() if "prefect.engine" in one.cmdline())
    training.kill()
    until(lambda: (state := seen(flow_run).state) is not None and state.is_final(), lambda: seen(flow_run).state)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_killed_deployed_run_resumes_to_the_same_bytes_and_names_no_command(
    run_of: Callable[..., Run], worker: Worker, tmp_path: Path
) -> None:
    alone, killed, ran = run_of("alone"), run_of("killed"), tmp_path / "ran"
    (tmp_path / "code").mkdir()
    (tmp_path / "code/sitecustomize.py").write_text(f"open({str(ran)!r}, 'w')")
    named = ("--job-variable", f"command=touch {ran}", "--job-variable", f'env={{"PYTHONPATH": "{tmp_path}/code"}}')
    assert start(alone, config=str(alone.config_path)).is_completed()
    first, _ = deployed(killed, worker, *named)
    kill_after(3, killed, first, worker)
    second, code = deployed(killed, worker, "--watch")
    states = [state.name for one in (first, second) if (state := seen(one).state) is not None]
    assert (states, code) == (["Crashed", "PolicyTrained"], 0)
    assert checkpoint_hashes(killed) == checkpoint_hashes(alone) and len(checkpoint_hashes(alone)) == 2
    assert logged(killed) == [1, 2, 3, 4]
    assert not ran.exists()
