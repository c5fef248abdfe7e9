"""A Prefect server of the tests' own: started as `rc1` starts one, without what no test waits for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prefect import settings

from deployments import children
from deployments.server import free_port, start_server
from deployments.server import settings as settings_of

_SERVICES = (
    "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR",
    "SCHEDULER",
)  # fmt: skip
"""What a server does every few seconds for schedules, workers and pauses; no test waits for any of it."""


@contextmanager
def server_of_tests(home: Path) -> Iterator[None]:
    """A server to which every flow goes that is started in this process.

    Args:
        home: a folder for its database and for results: in one of its own no test hits another one's cache.
    """
    with pytest.MonkeyPatch.context() as patch:
        for service in _SERVICES:
            patch.setenv(f"PREFECT_SERVER_SERVICES_{service}_ENABLED", "false")
        patch.setenv("PREFECT_UI_ENABLED", "false")
        server = start_server(home, free_port())
    here = settings_of(home, server.url)
    chosen: dict[Any, Any] = {
        settings.PREFECT_API_URL: here["PREFECT_API_URL"],
        settings.PREFECT_LOCAL_STORAGE_PATH: here["PREFECT_LOCAL_STORAGE_PATH"],
        settings.PREFECT_LOGGING_TO_API_ENABLED: False,
        # Who sends them is ended within a second, at the end of every flow.
        settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
    }
    try:
        with settings.temporary_settings(chosen):
            yield
    finally:
        children.stop(server.process, 2.0)
