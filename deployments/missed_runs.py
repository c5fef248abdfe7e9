"""After nights without a server or worker only the newest scheduled run is wanted; the others would check the same."""

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
from prefect.states import Cancelled


def cancel_if_missed(flow_run_id: UUID) -> bool:
    """Cancel a run if its deployment's schedule has a newer one that is due, and return whether it did."""
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
        newer = [other for other in due if other.auto_scheduled and other.expected_start_time != begins]
        if newer:
            message = f"missed; {len(newer)} newer run(s) of this schedule are due, and the newest checks the same"
            client.set_flow_run_state(run.id, Cancelled(message=message), force=True)
    return bool(newer)
