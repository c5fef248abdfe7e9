"""The deployments of a workspace, as `prefect.yaml` lists them, for the server at `PREFECT_API_URL`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from prefect import Flow, State
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.schedules import Cron
from prefect.states import Crashed

from flows.failures import keep_crashed_night
from rc1_lib.runtime.libraries import lacking_for_training
from rc1_lib.workspace.artifacts import CODE_ROOT

LISTED = Path(__file__).parent / "prefect.yaml"
_UNFINISHED = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]


def deployments_of(workspace: Path) -> list[RunnerDeployment]:
    """Return the deployments, to be served for the workspace; `train` only if it can run here."""
    found = []
    for one in yaml.safe_load(LISTED.read_text())["deployments"]:
        if one["name"] == "train" and lacking_for_training():
            continue
        flow = Flow.from_source(source=str(CODE_ROOT), entrypoint=one["entrypoint"])
        assert isinstance(flow, Flow)  # it is awaitable only inside an event loop
        made = flow.to_deployment(
            name=one["name"],
            description=one["description"],
            parameters={**one["parameters"], "workspace": str(workspace)},
            schedules=[Cron(each["cron"], timezone=each["timezone"]) for each in one.get("schedules", ())],
        )
        assert isinstance(made, RunnerDeployment)
        found.append(made)
    return found


def crash_leftovers(workspace: Path) -> int:
    """Mark runs in a workspace as crashed that a killed `rc1 serve` left unfinished, and return their number.

    A database of the user's own may hold runs of other workspaces. A nightly is recorded in the history too, which
    Prefect's hooks do only for a run that ends in its own process.
    """
    left_by = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(is_null_=False),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNFINISHED)),
    )
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(flow_run_filter=left_by)
        left = [run for run in found if run.parameters.get("workspace") == str(workspace)]
        for run in left:
            message = "`rc1 serve` ended during this run; run it again, and it continues from what is done"
            crashed: State[Any] = Crashed(message=message)
            keep_crashed_night(run, crashed)  # first, since a run that ended is not looked for again
            client.set_flow_run_state(run.id, crashed, force=True)
    return len(left)
