"""A Prefect server for tests: started as `rc1` starts one, without services that no test needs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from prefect import settings

from deployments.server import free_port, start_server
from deployments.server import settings as settings_of
from rc1_lib.workspace.state import make_state
from tests.once import copy_of

_SERVICES = (
    "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR",
    "SCHEDULER",
)  # fmt: skip
"""Periodic services for schedules, workers and pauses, which no test needs."""


def give_tables(home: Path, factory: pytest.TempPathFactory) -> Path:
    """Give the server of `home` its empty tables: to make them takes 8 of the 12 s of a core that its start takes."""

    def make(folder: Path) -> None:
        folder.mkdir()
        start_server(folder, free_port()).stop(10.0)
        with closing(sqlite3.connect(make_state(folder) / "prefect.db")) as made:
            made.execute("VACUUM INTO ?", (str(folder / "prefect.db"),))

    shutil.copyfile(copy_of("prefect_tables", make, factory) / "prefect.db", make_state(home) / "prefect.db")
    return home


@contextmanager
def server_of_tests(home: Path) -> Iterator[None]:
    """A server for every flow that is started in this process.

    Args:
        home: a folder for its database and results; a separate one keeps other tests' caches out.
    """
    with pytest.MonkeyPatch.context() as patch:
        for service in _SERVICES:
            patch.setenv(f"PREFECT_SERVER_SERVICES_{service}_ENABLED", "false")
        patch.setenv("PREFECT_UI_ENABLED", "false")
        server = start_server(home, free_port())
    here = settings_of(home, server.url, server.password)
    chosen: dict[Any, Any] = {
        settings.PREFECT_API_URL: here["PREFECT_API_URL"],
        settings.PREFECT_API_AUTH_STRING: server.password,
        settings.PREFECT_LOCAL_STORAGE_PATH: here["PREFECT_LOCAL_STORAGE_PATH"],
        settings.PREFECT_LOGGING_TO_API_ENABLED: False,
    }
    try:
        with pytest.MonkeyPatch.context() as patch, settings.temporary_settings(chosen):
            patch.setenv("PREFECT_API_AUTH_STRING", server.password)  # for processes that tests start
            yield
    finally:
        server.stop(2.0)


def still_running(process: psutil.Process) -> bool:
    """Whether a process runs (one that nobody waited for does not)."""
    try:
        return str(process.status()) != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
