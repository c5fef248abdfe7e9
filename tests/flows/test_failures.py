"""A failed run that a worker started writes its own report and debug bundle: no command does it for the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from prefect import State
from prefect.client.schemas.objects import FlowRun
from prefect.states import Crashed, Failed

from flows.calibrate import calibrate
from flows.failures import leave_failure
from flows.preflight import preflight
from flows.scale_up import scale_up
from flows.train import train
from rc1_lib.preflight.nights import NIGHTS
from rc1_lib.run import open_run
from rc1_lib.workspace.artifacts import read_json
from tasks.endings import GATES_FAILED, REFUSED


def ended(root: Path, state: State[Any], *, deployed: bool = True, **parameters: Any) -> list[str]:
    """The reports of a workspace after a run ended in this state, without the time in their names."""
    chosen = {"profile": "local", "workspace": str(root), **parameters}
    deployment = uuid4() if deployed else None
    run = FlowRun(name="a run", flow_id=uuid4(), deployment_id=deployment, parameters=chosen, state=state)
    leave_failure(train, run, state)
    return sorted(path.name.partition("_")[0] + path.suffix for path in root.rglob("reports/**/*") if path.is_file())


@pytest.mark.parametrize("flow", [train, preflight, calibrate, scale_up])
def test_every_flow_has_the_failure_hook(flow: Any) -> None:
    assert flow.on_failure_hooks == flow.on_crashed_hooks == [leave_failure]


def test_fault_writes_a_report_and_a_debug_bundle(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/train.log").write_text("step 1\nstep 2\n")
    assert ended(tmp_path, Failed(data=ZeroDivisionError("a fault"), message="")) == ["ERROR.json", "FAIL.tgz"]
    (report,) = tmp_path.glob("reports/ERROR_*.json")
    body = read_json(report)
    assert (body["kind"], body["message"], body["last_lines"]) == ("ZeroDivisionError", "a fault", ["step 1", "step 2"])


def test_nightly_run_whose_process_died_is_in_the_history(tmp_path: Path) -> None:
    for state in (Crashed(message="killed by signal 9"), Failed(message="a fault"), Failed(name=GATES_FAILED)):
        ended(tmp_path, state, recheck=True)
    night = read_json(tmp_path / NIGHTS)
    assert (night["outcome"], night["verdict"]) == ("crashed", "killed by signal 9")


def test_nightly_run_whose_process_died_has_the_recorded_settings(tmp_path: Path) -> None:
    run = open_run(workspace=tmp_path, overrides=["pool.n=120"])
    run.write_effective_config()
    ended(tmp_path, Crashed(message="killed by signal 9"), recheck=True, profile=None)
    assert read_json(tmp_path / NIGHTS)["config_sha256"] == run.config_sha256


def test_rejected_run_writes_nothing(tmp_path: Path) -> None:
    assert ended(tmp_path, Failed(name=REFUSED, message="no")) == []


def test_run_from_the_command_line_writes_nothing(tmp_path: Path) -> None:
    assert ended(tmp_path, Failed(name=GATES_FAILED, message="no"), deployed=False) == []
