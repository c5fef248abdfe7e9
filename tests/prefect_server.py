"""A Prefect server of the tests' own: with what flows need, and without what none of them waits for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SERVICES = (
    "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR",
    "SCHEDULER",
)  # fmt: skip
"""What a server does every few seconds for schedules, workers and pauses; no test waits for any of it."""


@contextmanager
def server_of_tests(storage: Path) -> Iterator[None]:
    """A server to which every flow goes that is started in this process.

    Args:
        storage: a folder for results. The harness isolates the database alone: without a folder of its own a test
            would hit another one's cache.
    """
    from prefect import settings
    from prefect.testing.utilities import prefect_test_harness

    chosen: dict[str, Any] = {
        "PREFECT_LOCAL_STORAGE_PATH": storage,
        "PREFECT_LOGGING_TO_API_ENABLED": False,
        "PREFECT_SERVER_ANALYTICS_ENABLED": False,
        "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": False,
    }
    chosen |= {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": False for name in _SERVICES}
    by_setting = {getattr(settings, name): value for name, value in chosen.items()}
    with settings.temporary_settings(by_setting), prefect_test_harness(server_startup_timeout=120):
        yield
