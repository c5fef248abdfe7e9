"""Register the deployments of a workspace with the server at `PREFECT_API_URL`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from prefect import Flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.exceptions import ObjectNotFound
from prefect.schedules import Cron

from rc1_lib.errors import RC1Error
from rc1_lib.runtime.libraries import lacking_for_training
from rc1_lib.workspace.artifacts import CODE_ROOT

ENTRYPOINT = "flows/preflight.py:preflight"
CALIBRATE_ENTRYPOINT = "flows/calibrate.py:calibrate"
TRAIN_ENTRYPOINT = "flows/train.py:train"
SCALE_UP_ENTRYPOINT = "flows/scale_up.py:scale_up"
RELEASE_ENTRYPOINT = "flows/release.py:release"
NIGHTLY_CRON = "0 3 * * *"
NIGHTLY: dict[str, Any] = {
    "build": "never",
    "refresh": True,
    "ticket": False,
    "recheck": True,
    "revoke_on_failure": True,
}


def create_pool(pool: str) -> None:
    """Create the process work pool, for one run at a time, or reset it."""
    with get_client(sync_client=True) as client:
        client.create_work_pool(_new_pool(pool), overwrite=True)


def join_pool(pool: str) -> None:
    """Create the process work pool if it does not exist; an existing one keeps its limit.

    Raises:
        RC1Error: when it exists for another type of worker.
    """
    with get_client(sync_client=True) as client:
        try:
            found = client.read_work_pool(pool)
        except ObjectNotFound:
            client.create_work_pool(_new_pool(pool))
            return
        if found.type != "process":
            raise RC1Error(
                f"the server's work pool {pool} is of type {found.type}, expected process; delete it, or register the "
                f"deployments for containers instead"
            )
        client.update_work_pool(pool, WorkPoolUpdate(base_job_template=_template()))


def check_served_here(workspace: Path) -> None:
    """Check that the server's deployments may be registered for a workspace.

    Raises:
        RC1Error: when they are registered for another workspace, whose runs would come here.
    """
    with get_client(sync_client=True) as client:
        try:
            parameters = client.read_deployment_by_name("rc1/preflight").parameters
        except ObjectNotFound:
            return
    there = parameters.get("workspace")
    if there != str(workspace):
        raise RC1Error(
            f"--workspace {workspace}: the server's rc1/preflight uses {there or 'no workspace'}; serve that one, or "
            f"remove the deployment with `prefect deployment delete rc1/preflight`"
        )


def _new_pool(pool: str) -> WorkPoolCreate:
    return WorkPoolCreate(name=pool, type="process", base_job_template=_template(), concurrency_limit=1)


def _template() -> dict[str, Any]:
    """Return the template of a process pool, in which no run can name its command, environment or folder."""
    template: dict[str, Any] = json.loads((Path(__file__).parent / "pools/process.json").read_text())
    template["job_configuration"]["command"] = shlex.join([sys.executable, "-P", "-m", "deployments.engine"])
    return template


def register(workspace: Path, pool: str) -> None:
    """Register the deployments for the workspace on an existing pool; `train` only if it can run here."""
    here = {"workspace": str(workspace)}
    entries = (ENTRYPOINT, CALIBRATE_ENTRYPOINT, SCALE_UP_ENTRYPOINT, RELEASE_ENTRYPOINT)
    preflight, calibrate, scale_up, release = (_flow(entry) for entry in entries)
    quietly: dict[str, Any] = {
        "work_pool_name": pool,
        "print_next_steps": False,
        "ignore_warnings": True,
    }
    preflight.deploy(name="preflight", parameters=here, description="data, both rounds, ticket", **quietly)
    calibrate.deploy(
        name="calibrate", parameters=here, description="shadow run, weights, ablation, shadow run again", **quietly
    )
    if not lacking_for_training():
        described = "warm start, PPO, evaluation; needs the ticket"
        _flow(TRAIN_ENTRYPOINT).deploy(name="train", parameters=here, description=described, **quietly)
    scale_up.deploy(
        name="scale-up", parameters=here, description="the pool grows from size to size, through gates", **quietly
    )
    release.deploy(
        name="release",
        parameters=here,
        description="the report, and one archive to check and repeat a run that passed",
        **quietly,
    )
    preflight.deploy(
        name="nightly",
        parameters={**here, **NIGHTLY},
        schedules=[Cron(NIGHTLY_CRON, timezone="UTC")],
        description="checks everything that the ticket pins again; a failure revokes it",
        **quietly,
    )


def _flow(entrypoint: str) -> Flow[..., Any]:
    flow = Flow.from_source(source=str(CODE_ROOT), entrypoint=entrypoint)
    assert isinstance(flow, Flow)  # it is awaitable only inside an event loop
    return flow
