"""Runs whose process was lost end as crashed, and free their work pool."""

from __future__ import annotations

from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.states import Running

from deployments.crashed_runs import NAME, crash_leftovers, watch_heartbeats
from deployments.register import NIGHTLY, NIGHTLY_CRON, create_pool, register
from tasks.endings import ENDINGS

POOL = "rc1-test"

pytestmark = pytest.mark.usefixtures("no_automation_left")


def test_leftover_run_of_an_earlier_server_ends_as_crashed_and_frees_the_pool(tmp_path: Path) -> None:
    create_pool(POOL)
    register(tmp_path, POOL)
    with get_client(sync_client=True) as client:
        assert client.read_work_pool(POOL).concurrency_limit == 1
        nightly = client.read_deployment_by_name("rc1/nightly")
        assert nightly.parameters == {"workspace": str(tmp_path), **NIGHTLY}
        assert [getattr(one.schedule, "cron", None) for one in nightly.schedules] == [NIGHTLY_CRON]
        lost = client.create_flow_run_from_deployment(client.read_deployment_by_name("rc1/preflight").id)
        client.set_flow_run_state(lost.id, Running(), force=True)
        assert crash_leftovers("another-pool") == 0
        assert crash_leftovers(POOL) == 1
        state = client.read_flow_run(lost.id).state
        assert state is not None and state.is_crashed()


def test_heartbeat_watch_exists_once_and_knows_every_final_state() -> None:
    watch_heartbeats()
    watch_heartbeats()
    with get_client(sync_client=True) as client:
        (watch,) = client.read_automations_by_name(NAME)
    expected = getattr(watch.trigger, "expect", set())
    assert {f"prefect.flow-run.{name}" for name in (*ENDINGS, "Completed", "Crashed")} <= expected
