"""A team's existing server: registered deployments, settings that are kept, and errors."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import PrefectHTTPStatusError
from prefect.workers.process import ProcessJobConfiguration, ProcessWorker

from deployments import serve
from deployments.register import check_served_here, create_pool, join_pool, register
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import PROJECT_ROOT

POOL = "rc1-team"

pytestmark = pytest.mark.usefixtures("no_automation_left")


@pytest.mark.parametrize("kind", ["process", "docker", "kubernetes"])
def test_server_accepts_the_pool_template_and_validates_deployments_with_it(kind: str) -> None:
    template = json.loads((PROJECT_ROOT / f"deployments/pools/{kind}.json").read_text())
    pool = f"{POOL}-{kind}"
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name=pool, type=kind, base_job_template=template), overwrite=True)
        flow_id = client.create_flow_from_name("of-the-team")
        asked = {"name": kind, "work_pool_name": pool, "enforce_parameter_schema": False}
        client.create_deployment(flow_id, **asked, job_variables={"labels": {"team": "a"}, "name": "rc1"})
        with pytest.raises(PrefectHTTPStatusError, match="Validation failed for field"):
            client.create_deployment(flow_id, **asked, job_variables={"labels": "team=a"})


@pytest.mark.parametrize("named", [{"command": "touch x"}, {"env": {"PYTHONPATH": "x"}}])
def test_run_cannot_name_its_command_environment_or_folder(tmp_path: Path, named: dict[str, Any]) -> None:
    create_pool(POOL)
    register(tmp_path, POOL)
    with get_client(sync_client=True) as client:
        deployment, pool = client.read_deployment_by_name("rc1/preflight"), client.read_work_pool(POOL)
        with pytest.raises(PrefectHTTPStatusError, match="Validation failed"):
            client.create_flow_run_from_deployment(deployment.id, job_variables=named)
    # Even if a server let it through, the worker's template has no place for it.
    template = pool.base_job_template
    made = asyncio.run(ProcessJobConfiguration.from_template_and_values(template, {**named, "env.PYTHONPATH": "x"}))
    assert made.command == shlex.join([sys.executable, "-P", "-m", "deployments.engine"])
    assert (made.env, made.working_dir) == ({}, None)


def test_joining_an_existing_pool_keeps_its_limit_but_not_prefects_template() -> None:
    create_pool(POOL)
    with get_client(sync_client=True) as client:
        template = client.read_work_pool(POOL).base_job_template
        prefects = ProcessWorker.get_default_base_job_template()
        wider = WorkPoolCreate(name=POOL, type="process", base_job_template=prefects, concurrency_limit=3)
        client.create_work_pool(wider, overwrite=True)
        join_pool(POOL)
        joined = client.read_work_pool(POOL)
        assert (joined.concurrency_limit, joined.base_job_template) == (3, template)
        create_pool(POOL)
        assert client.read_work_pool(POOL).concurrency_limit == 1


def test_server_of_another_workspace_is_rejected(tmp_path: Path) -> None:
    create_pool(POOL)
    register(tmp_path / "first", POOL)
    check_served_here(tmp_path / "first")
    with pytest.raises(RC1Error, match=r"rc1/preflight .*first"):
        check_served_here(tmp_path / "second")


@pytest.mark.parametrize(
    ("address", "error"), [("team:4200", "is not an address"), ("http://127.0.0.1:9", "no Prefect server")]
)
def test_invalid_or_unreachable_server_is_rejected(
    address: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert serve.main(["--workspace", str(tmp_path), "--server", address]) == 2
    assert signal.getsignal(signal.SIGINT) is before, "later commands could not be interrupted"
    assert error in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
