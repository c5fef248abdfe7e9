"""Runs whose process was lost end as crashed and free their work pool; of missed nights only the newest is run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.states import Running, Scheduled

from deployments.crashed_runs import NAME, crash_leftovers, watch_heartbeats
from deployments.missed_runs import cancel_if_missed
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


def test_of_missed_scheduled_runs_only_the_newest_is_run(tmp_path: Path) -> None:
    create_pool(POOL)
    register(tmp_path, POOL)
    begin = datetime.now(UTC) - timedelta(days=3)
    with get_client(sync_client=True) as client:
        nightly = client.read_deployment_by_name("rc1/nightly").id
        asked = {"start_time": begin.isoformat(), "min_runs": 4, "max_runs": 4, "min_time": 0}
        client.request("POST", "/deployments/{id}/schedule", path_params={"id": nightly}, json=asked)
        by_hand = client.create_flow_run_from_deployment(nightly, state=Scheduled(scheduled_time=begin))
        planned = [run for run in client.read_flow_runs(limit=200) if run.deployment_id == nightly]
        nights = {run.expected_start_time: run.id for run in planned if run.auto_scheduled and run.expected_start_time}
        due = [nights[night] for night in sorted(nights) if night < datetime.now(UTC)]
        assert [cancel_if_missed(run) for run in due] == [True, True, False]
        states = [client.read_flow_run(run).state for run in due]
        assert [state is not None and state.is_cancelled() for state in states] == [True, True, False]
        assert not cancel_if_missed(nights[max(nights)]) and not cancel_if_missed(by_hand.id)
