"""A Prefect server of the tests' own: with what flows need, and without what none of them waits for.

It is forked from the tests' interpreter, which has imported what a server imports, and its database is a copy of one
whose tables were made once for all servers of a run: both together take a server as long as a hundred task runs.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import certifi
import pytest
import uvicorn
from prefect import settings
from prefect.context import refresh_global_settings_context
from prefect.server.api import background_workers
from prefect.server.api.server import SubprocessASGIServer
from prefect.server.database import provide_database_interface
from prefect.settings.context import get_current_settings
from prefect.testing.utilities import prefect_test_harness
from sqlalchemy.engine import make_url

from deployments.server_app import create_app
from tests.forks import Fork, Forks, this_interpreter
from tests.once import copy_of

_SERVICES = (
    "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS", "REPOSSESSOR",
    "SCHEDULER",
)  # fmt: skip
"""What a server does every few seconds for schedules, workers and pauses; no test waits for any of it."""

_END = "-----END CERTIFICATE-----\n"
"""Of the one that clients read: nothing is encrypted here, and each client would read a hundred and forty."""

_SELDOM = timedelta(seconds=30)
"""How often a server looks for work of its own, which those services would give it; else four times a second."""


@dataclass(frozen=True)
class _Process:
    """A forked server, as Prefect sees a process that it has started."""

    fork: Fork
    stdout: None = None
    stderr: None = None

    def poll(self) -> int | None:
        return self.fork.poll()

    @property
    def returncode(self) -> int | None:
        return self.fork.poll()

    def terminate(self) -> None:
        self.fork.kill()

    def wait(self, timeout: float | None = None) -> int:
        return self.fork.wait()


def migrate() -> None:
    """As a process: make the tables of the database that the environment names."""
    refresh_global_settings_context()
    asyncio.run(provide_database_interface().create_db())


def serve(port: str) -> None:
    """As a process: be the server that the environment describes."""
    refresh_global_settings_context()
    seldom = partial(background_workers.Worker, minimum_check_interval=_SELDOM, scheduling_resolution=_SELDOM)
    with patch.object(background_workers, "Worker", seldom):
        uvicorn.run(create_app(), host="127.0.0.1", port=int(port), log_level="error", lifespan="on")


def _address(database: Path) -> str:
    return f"sqlite+aiosqlite:///{database}"


def _migrated(forks: Forks, factory: pytest.TempPathFactory) -> Path:
    """A database with every table and nothing in them."""

    def make(folder: Path) -> None:
        folder.mkdir()
        name = settings.PREFECT_SERVER_DATABASE_CONNECTION_URL.name
        made = forks.start("tests.prefect_server.migrate", environment={name: _address(folder / "prefect.db")})
        assert made.wait() == 0, made.told()

    return copy_of("prefect_database", make, factory) / "prefect.db"


@contextmanager
def server_of_tests(factory: pytest.TempPathFactory) -> Iterator[None]:
    """A server to which every flow goes that is started in this process.

    Args:
        factory: pytest's own, for the server's database and for results: the harness isolates the database alone, and
            without a folder of its own a test would hit another one's cache.
    """
    storage = factory.mktemp("prefect_storage")
    certificate = storage.with_suffix(".pem")
    certificate.write_text(certifi.contents().partition(_END)[0] + _END)
    chosen: dict[str, Any] = {
        "PREFECT_LOCAL_STORAGE_PATH": storage,
        "PREFECT_API_SSL_CERT_FILE": str(certificate),
        "PREFECT_LOGGING_TO_API_ENABLED": False,
        "PREFECT_SERVER_ANALYTICS_ENABLED": False,
        "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": False,
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": None,  # who sends them is ended within a second, at the end of every flow
    }
    chosen |= {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": False for name in _SERVICES}
    by_setting = {getattr(settings, name): value for name, value in chosen.items()}
    forks = this_interpreter(factory.mktemp("prefect_server"))

    def start(server: SubprocessASGIServer) -> _Process:
        given = get_current_settings().to_environment_variables(exclude_unset=True)
        database = make_url(settings.PREFECT_SERVER_DATABASE_CONNECTION_URL.value()).database
        shutil.copyfile(_migrated(forks, factory), str(database))
        ephemeral = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
        return _Process(forks.start("tests.prefect_server.serve", server.port, environment={**given, **ephemeral}))

    with (
        settings.temporary_settings(by_setting),
        patch.object(SubprocessASGIServer, "_run_uvicorn_command", start),
        prefect_test_harness(server_startup_timeout=600),
    ):
        yield
