"""Settings of a test's process that runs flows as a worker's process does."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from prefect.settings import (
    PREFECT_API_URL,
    PREFECT_LOCAL_STORAGE_PATH,
    PREFECT_LOGGING_TO_API_ENABLED,
    temporary_settings,
)


def at_the_server(server: str, storage: str) -> AbstractContextManager[Any]:
    """Prefect settings that send flows to the tests' server."""
    chosen: dict[Any, Any] = {
        PREFECT_API_URL: server, PREFECT_LOCAL_STORAGE_PATH: storage, PREFECT_LOGGING_TO_API_ENABLED: False,
    }  # fmt: skip
    return temporary_settings(chosen)
