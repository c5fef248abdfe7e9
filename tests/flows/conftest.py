"""A Prefect server for the whole session, and flows run on the small pool in workspaces of their own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
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
from rc1_lib.run import Run, open_run
from tests.ticketed import copy_with_base, ticketed

from .trainings import Ended, copied
from .trainings import start as start_training


@pytest.fixture(scope="session", autouse=True)
def _prefect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # The harness isolates the database, not the results: without a folder of its own a test would hit another's cache.
    storage = tmp_path_factory.mktemp("prefect_storage")
    chosen = {
        PREFECT_LOCAL_STORAGE_PATH: storage,
        PREFECT_LOGGING_TO_API_ENABLED: False,
        PREFECT_SERVER_ANALYTICS_ENABLED: False,
    }
    with temporary_settings(chosen), prefect_test_harness(server_startup_timeout=120):
        yield


def start(run: Run, **parameters: Any) -> State[Any]:
    """Run the preflight on a run's workspace, with its overrides, on the files that are there."""
    chosen = {"build": "never", "overrides": list(run.overrides), "workspace": str(run.workspace.root)}
    state: State[Any] = preflight(**{**chosen, **parameters}, return_state=True)
    return state


@pytest.fixture
def run_flow() -> Callable[..., State[Any]]:
    """`run_flow(run, build="auto", ...)` gives the flow's final state."""
    return start


@pytest.fixture(scope="session")
def green(built: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, State[Any]]:
    """A workspace after a green preflight, and the flow's state. Never write into it: take `green_copy`."""
    root = tmp_path_factory.mktemp("green") / "workspace"
    shutil.copytree(built.workspace.root, root)
    run = open_run(profile="local", workspace=root, overrides=built.overrides)
    return run, start(run)


@pytest.fixture
def green_copy(green: tuple[Run, State[Any]], tmp_path: Path) -> Run:
    """A workspace of the test's own after a green preflight, with its ticket."""
    run, _ = green
    root = tmp_path / "workspace"
    shutil.copytree(run.workspace.root, root)
    return open_run(profile="local", workspace=root, overrides=run.overrides)


@pytest.fixture(scope="session")
def opened(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace with a ticket, a tiny base and nothing trained. Never write into it: take `copied`."""
    root = tmp_path_factory.mktemp("opened") / "workspace"
    copy_with_base(built, root)
    return ticketed(root, built)


@pytest.fixture(scope="session")
def done(opened: Run, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A training that nothing disturbed. Never write into it: take `copied`."""
    run = copied(opened, tmp_path_factory.mktemp("done") / "workspace")
    return Ended(run, start_training(run))
