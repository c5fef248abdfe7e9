"""After nights without a server only the newest scheduled run is wanted; the others would check the same."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType


def is_missed(flow_run_id: UUID) -> bool:
    """Return whether a run was scheduled, and its schedule has a newer one that is due."""
    with get_client(sync_client=True) as client:
        run = client.read_flow_run(flow_run_id)
        begins = run.expected_start_time
        if not run.auto_scheduled or run.deployment_id is None or begins is None:
            return False
        due = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(
                deployment_id=FlowRunFilterDeploymentId(any_=[run.deployment_id]),
                state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
                expected_start_time=FlowRunFilterExpectedStartTime(after_=begins, before_=datetime.now(UTC)),
            )
        )
    return any(other.auto_scheduled and other.expected_start_time != begins for other in due)
