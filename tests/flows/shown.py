"""What a flow run has put into the UI."""

from __future__ import annotations

from typing import Any

from prefect import State, get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId
from prefect.client.schemas.objects import Artifact
from prefect.client.schemas.sorting import ArtifactSort


def artifacts(state: State[Any]) -> dict[str, Artifact]:
    """The artifacts of this very run, by key, the latest of each: others at the same server write the same keys."""
    of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[state.state_details.flow_run_id]))
    with get_client(sync_client=True) as client:
        found = client.read_artifacts(artifact_filter=of_run, sort=ArtifactSort.CREATED_DESC)
    return {str(artifact.key): artifact for artifact in reversed(found)}
