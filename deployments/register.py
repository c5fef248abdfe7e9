"""Registering the deployments of a workspace with the server named by `PREFECT_API_URL`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.schedules import Cron
from prefect.workers.process import ProcessWorker

from rc1_lib.artifacts import PROJECT_ROOT

ENTRYPOINT = "flows/preflight.py:preflight"
CALIBRATE_ENTRYPOINT = "flows/calibrate.py:calibrate"
TRAIN_ENTRYPOINT = "flows/train.py:train"
SCALE_UP_ENTRYPOINT = "flows/scale_up.py:scale_up"
NIGHTLY_CRON = "0 3 * * *"
NIGHTLY: dict[str, Any] = {"build": "never", "refresh": True, "ticket": False, "recheck": True, "on_red_revoke": True}


def register(workspace: Path, pool: str) -> None:
    """Create the work pool (one run at a time) and register the deployments for the workspace."""
    template = ProcessWorker.get_default_base_job_template()
    with get_client(sync_client=True) as client:
        client.create_work_pool(
            WorkPoolCreate(name=pool, type="process", base_job_template=template, concurrency_limit=1), overwrite=True
        )
    here = {"workspace": str(workspace)}
    entries = (ENTRYPOINT, CALIBRATE_ENTRYPOINT, TRAIN_ENTRYPOINT, SCALE_UP_ENTRYPOINT)
    preflight, calibrate, train, scale_up = (_flow(entry) for entry in entries)
    quietly: dict[str, Any] = {
        "work_pool_name": pool,
        "job_variables": {"command": shlex.join([sys.executable, "-m", "deployments.engine"])},
        "print_next_steps": False,
        "ignore_warnings": True,
    }
    preflight.deploy(name="preflight", parameters=here, description="data, both rounds, ticket", **quietly)
    calibrate.deploy(
        name="calibrate", parameters=here, description="shadow run, weights, ablation, shadow run again", **quietly
    )
    train.deploy(name="train", parameters=here, description="warm start, PPO, evaluation; needs the ticket", **quietly)
    scale_up.deploy(
        name="scale-up", parameters=here, description="the pool grows from size to size, through gates", **quietly
    )
    preflight.deploy(
        name="nightly",
        parameters={**here, **NIGHTLY},
        schedules=[Cron(NIGHTLY_CRON, timezone="UTC")],
        description="everything the ticket vouches for, checked again; a failure revokes it",
        **quietly,
    )


def _flow(entrypoint: str) -> Flow[..., Any]:
    flow = Flow.from_source(source=str(PROJECT_ROOT), entrypoint=entrypoint)
    assert isinstance(flow, Flow)  # awaitable only where an event loop runs
    return flow
