"""Mark runs whose process was lost as crashed; until then they occupy the work pool's only slot."""

from __future__ import annotations

from datetime import timedelta

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.states import Crashed

from tasks.endings import ENDINGS

NAME = "rc1: a run without heartbeat has crashed"
SILENCE = timedelta(seconds=90)
"""Three heartbeats."""

_HEARTBEAT = "prefect.flow-run.heartbeat"
_PREFECTS_OWN = ("Completed", "Failed", "Crashed", "Cancelled", "Cancelling", "Paused", "Suspended", "AwaitingRetry")
_HOLDING = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]


def crash_leftovers(pool: str) -> int:
    """Mark runs in the pool as crashed that an earlier server left unfinished; call it before a worker starts.

    Returns:
        The number of such runs.
    """
    with get_client(sync_client=True) as client:
        left = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_HOLDING))),
            work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
        )
        for run in left:
            message = "the server stopped during this run; run it again, and it continues from what is done"
            client.set_flow_run_state(run.id, Crashed(message=message), force=True)
    return len(left)


def watch_heartbeats() -> None:
    """Have the server mark a run of RC1 as crashed if it stops sending heartbeats without having ended.

    This is limited to RC1's runs, since the final states of others are unknown here.
    """
    endings = {f"prefect.flow-run.{name}" for name in (*_PREFECTS_OWN, *ENDINGS)}
    watch = AutomationCore(
        name=NAME,
        trigger=EventTrigger(
            match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
            match_related=ResourceSpecification({"prefect.resource.role": "flow", "prefect.resource.name": "rc1"}),
            for_each={"prefect.resource.id"},
            after={_HEARTBEAT},
            expect={_HEARTBEAT, *endings},
            posture=Posture.Proactive,
            threshold=1,
            within=SILENCE,
        ),
        actions=[ChangeFlowRunState(state=StateType.CRASHED, name="Crashed", message="its process sent no heartbeat")],
    )
    with get_client(sync_client=True) as client:
        for old in client.read_automations_by_name(NAME):
            client.delete_automation(old.id)
        client.create_automation(watch)
