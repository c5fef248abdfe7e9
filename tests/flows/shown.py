"""The artifacts and task runs of a flow run, as the UI shows them."""

from __future__ import annotations

import time
from typing import Any

from prefect import State, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import Artifact, TaskRun
from prefect.client.schemas.sorting import ArtifactSort


def artifacts(state: State[Any]) -> dict[str, Artifact]:
    """The latest artifact per key of this run: other runs at the same server write the same keys."""
    of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[state.state_details.flow_run_id]))
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=of_run, sort=ArtifactSort.CREATED_DESC)
    return {str(artifact.key): artifact for artifact in reversed(found)}


def task_runs(state: State[Any]) -> list[TaskRun]:
    """The flow run's task runs by start time, after the server knows the final state of each."""
    this_run = FlowRunFilter(id=FlowRunFilterId(any_=[state.state_details.flow_run_id]))
    with get_client(sync_client=True) as client:
        before = -1
        for _ in range(100):
            runs = client.read_task_runs(flow_run_filter=this_run, limit=200)
            if len(runs) == before and all(run.state is not None and run.state.is_final() for run in runs):
                return sorted(runs, key=lambda run: str(run.start_time))
            before = len(runs)
            time.sleep(0.3)
    raise AssertionError("the server lacks the final state of a task")


def statuses(report: Any) -> dict[str, str]:
    """Gate -> its status, in a round's report."""
    return {gate["name"]: gate["status"] for gate in report["gates"]}
