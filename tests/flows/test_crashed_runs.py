"""What a killed `rc1 serve` leaves: runs that end as crashed, and missed nights of which only the newest is run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.responses import DeploymentResponse
from prefect.states import Running, Scheduled

from deployments.register import crash_leftovers, deployments_of
from flows.missed_nights import is_missed
from flows.preflight import preflight
from rc1_lib.preflight.nights import NIGHTS
from rc1_lib.workspace.artifacts import read_json


def registered(workspace: Path, name: str) -> DeploymentResponse:
    """Register the deployments as `rc1 serve` does, and return one of them."""
    for one in deployments_of(workspace):
        one.apply()
    with get_client(sync_client=True) as client:
        return client.read_deployment_by_name(f"rc1/{name}")


def test_leftover_run_of_an_earlier_server_ends_as_crashed(tmp_path: Path) -> None:
    deployment = registered(tmp_path, "preflight").id
    with get_client(sync_client=True) as client:
        lost = client.create_flow_run_from_deployment(deployment)
        by_a_command = client.create_flow_run(preflight, state=Running())
        client.set_flow_run_state(lost.id, Running(), force=True)
        assert crash_leftovers(tmp_path / "another") == 0
        assert crash_leftovers(tmp_path) == 1
        states = {one.id: client.read_flow_run(one.id).state for one in (lost, by_a_command)}
    assert {key: state is not None and state.is_crashed() for key, state in states.items()} == {
        lost.id: True, by_a_command.id: False,
    }  # fmt: skip


def test_leftover_night_is_in_the_history(tmp_path: Path) -> None:
    deployment = registered(tmp_path, "nightly").id
    with get_client(sync_client=True) as client:
        lost = client.create_flow_run_from_deployment(deployment)
        client.set_flow_run_state(lost.id, Running(), force=True)
    assert crash_leftovers(tmp_path) == 1
    assert read_json(tmp_path / NIGHTS)["outcome"] == "crashed"


def test_of_missed_scheduled_runs_only_the_newest_is_run(tmp_path: Path) -> None:
    deployment = registered(tmp_path, "nightly")
    assert [getattr(one.schedule, "cron", None) for one in deployment.schedules] == ["0 3 * * *"]
    nightly, begin = deployment.id, datetime.now(UTC) - timedelta(days=3)
    with get_client(sync_client=True) as client:
        asked = {"start_time": begin.isoformat(), "min_runs": 4, "max_runs": 4, "min_time": 0}
        client.request("POST", "/deployments/{id}/schedule", path_params={"id": nightly}, json=asked)
        by_hand = client.create_flow_run_from_deployment(nightly, state=Scheduled(scheduled_time=begin))
        planned = [run for run in client.read_flow_runs(limit=200) if run.deployment_id == nightly]
        nights = {run.expected_start_time: run.id for run in planned if run.auto_scheduled and run.expected_start_time}
    due = [nights[night] for night in sorted(nights) if night < datetime.now(UTC)]
    assert [is_missed(run) for run in due] == [True, True, False]
    assert not is_missed(nights[max(nights)]) and not is_missed(by_hand.id)


def test_missed_night_ends_as_cancelled_and_is_no_night(tmp_path: Path) -> None:
    found: list[bool] = []

    def missed(flow_run_id: UUID) -> bool:
        found.append(is_missed(flow_run_id))
        return True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("flows.preflight.is_missed", missed)
        state = preflight(workspace=str(tmp_path), recheck=True, return_state=True)
    assert state.is_cancelled() and found == [False]
    assert not list(tmp_path.iterdir())
