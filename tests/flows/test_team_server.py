"""The templates of a team's work pools, on a server."""

from __future__ import annotations

import json

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import PrefectHTTPStatusError

from rc1_lib.workspace.artifacts import PROJECT_ROOT


@pytest.mark.parametrize("kind", ["docker", "kubernetes"])
def test_server_accepts_the_pool_template_and_validates_deployments_with_it(kind: str) -> None:
    template = json.loads((PROJECT_ROOT / f"deployments/pools/{kind}.json").read_text())
    pool = f"rc1-team-{kind}"
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name=pool, type=kind, base_job_template=template), overwrite=True)
        flow_id = client.create_flow_from_name("of-the-team")
        asked = {"name": kind, "work_pool_name": pool, "enforce_parameter_schema": False}
        client.create_deployment(flow_id, **asked, job_variables={"labels": {"team": "a"}, "name": "rc1"})
        with pytest.raises(PrefectHTTPStatusError, match="Validation failed for field"):
            client.create_deployment(flow_id, **asked, job_variables={"labels": "team=a"})
