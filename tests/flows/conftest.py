"""A Prefect server for the whole session, and flows run on the small pool in workspaces of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prefect import State
from prefect.settings import (
    PREFECT_LOCAL_STORAGE_PATH,
    PREFECT_LOGGING_TO_API_ENABLED,
    PREFECT_SERVER_ANALYTICS_ENABLED,
    temporary_settings,
)
from prefect.testing.utilities import prefect_test_harness

from flows.preflight import preflight
from rc1_lib.run import Run


@pytest.fixture(scope="session", autouse=True)
def _prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # The harness isolates the database, not the results: without a folder of its own a test would hit another's cache.
    storage = tmp_path_factory.mktemp("prefect_storage")
    quiet = {PREFECT_SERVER_ANALYTICS_ENABLED: False, PREFECT_LOGGING_TO_API_ENABLED: False}
    with (
        prefect_test_harness(server_startup_timeout=120),
        temporary_settings({PREFECT_LOCAL_STORAGE_PATH: storage, **quiet}),
    ):
        yield


@pytest.fixture
def run_flow() -> Callable[..., State[Any]]:
    """Run the preflight on a run's workspace with the run's own overrides: `run_flow(run, build="never", ...)`."""

    def start(run: Run, **parameters: Any) -> State[Any]:
        chosen = {"build": "never", "overrides": list(run.overrides), "workspace": str(run.workspace.root)}
        state: State[Any] = preflight(**{**chosen, **parameters}, return_state=True)
        return state

    return start
