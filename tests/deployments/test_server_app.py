"""With SQLite, transactions that may write wait for their turn; the server ends with the process that started it."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from prefect import settings
from prefect.context import refresh_global_settings_context
from prefect.server.database import provide_database_interface
from prefect.server.database.configurations import AioSqliteConfiguration
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from deployments import server, server_app
from deployments.server_app import InTurn
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.state import make_state
from tests.forks import this_interpreter
from tests.prefect_server import give_tables, still_running

TABLE = text("CREATE TABLE counted (number INTEGER PRIMARY KEY)")
COUNT = text("SELECT count(*) FROM counted")


def insert(number: int) -> str:
    return f"INSERT INTO counted VALUES ({number})"


async def with_table(configuration: AioSqliteConfiguration) -> AsyncEngine:
    engine = await configuration.engine()
    async with AsyncSession(engine) as session:
        await session.execute(TABLE)
    return engine


def test_two_transactions_that_read_before_writing_both_succeed(tmp_path: Path) -> None:
    async def both(configuration: AioSqliteConfiguration) -> None:
        engine = await with_table(configuration)

        async def other() -> None:
            session = AsyncSession(engine)
            async with session, configuration.begin_transaction(session):
                await session.execute(text(insert(1)))

        async with AsyncSession(engine) as session:
            async with configuration.begin_transaction(session):
                assert (await session.execute(COUNT)).scalar() == 0
                meanwhile = asyncio.create_task(other())
                await asyncio.sleep(0.2)  # without turns, the other one has written by then
                await session.execute(text(insert(2)))
            await meanwhile
            assert (await session.execute(COUNT)).scalar() == 2
        await engine.dispose()

    asyncio.run(both(InTurn(connection_url=f"sqlite+aiosqlite:///{tmp_path / 'one.db'}")))


def print_database_configuration() -> None:
    """In a process: make the application for the environment, and print its database configuration."""
    refresh_global_settings_context()
    os.environ[server.PARENT] = str(os.getppid())
    server_app.create_app()
    print(type(provide_database_interface().database_config).__name__)


@pytest.mark.parametrize(
    ("address", "configuration"),
    [
        ("sqlite+aiosqlite:///{folder}/one.db", "InTurn"),
        ("postgresql+asyncpg://user@127.0.0.1:1/none", "AsyncPostgresConfiguration"),
    ],
    ids=["SQLite", "PostgreSQL"],
)
def test_application_takes_turns_only_with_sqlite(tmp_path: Path, address: str, configuration: str) -> None:
    name = settings.PREFECT_SERVER_DATABASE_CONNECTION_URL.name
    process = this_interpreter(tmp_path / "forks").start(
        "tests.deployments.test_server_app.print_database_configuration",
        environment={name: address.format(folder=tmp_path), "PREFECT_SERVER_API_AUTH_STRING": "rc1:word"},
    )
    assert process.wait(120) == 0, process.read_output()
    assert process.read_output() == f"{configuration}\n"


class _Started(Exception):
    """Raised instead of starting a server."""


def test_server_runs_this_application_and_imports_nothing_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[Sequence[str]] = []

    def start(command: Sequence[str], **_: object) -> None:
        commands.append(command)
        raise _Started

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", start)
        with pytest.raises(_Started):
            server.start_server(tmp_path, 1)
    (command,) = commands
    assert command[1:4] == ["-P", "-m", "uvicorn"]
    (tmp_path / "click.py").write_text("raise SystemExit(3)")  # uvicorn would import it
    assert subprocess.run([*command[:4], "--version"], cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0
    module, _, function = command[command.index("--factory") + 1].partition(":")
    assert getattr(importlib.import_module(module), function) is server_app.create_app


_STARTS = """
import sys, time
from pathlib import Path
from deployments.server import free_port, start_server
print(start_server(Path(sys.argv[1]), free_port()).process.pid, flush=True)
time.sleep(600)
"""


def test_server_ends_when_the_process_that_started_it_is_killed(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    give_tables(tmp_path, tmp_path_factory)
    parent = subprocess.Popen(
        [sys.executable, "-c", _STARTS, str(tmp_path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT_ROOT)},
    )  # fmt: skip
    assert parent.stdout is not None
    serving = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 120
    while still_running(serving):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("name", ["x?y#z", "50 %41"])
def test_database_address_is_valid_for_any_name_of_a_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
    home = make_state(tmp_path / name)
    address = server.settings(tmp_path / name, "http://127.0.0.1:1")["PREFECT_SERVER_DATABASE_CONNECTION_URL"]
    with create_engine(address.replace("+aiosqlite", "")).connect() as database:
        database.exec_driver_sql("CREATE TABLE t (x)")
    assert (home / "prefect.db").exists()
    assert [path.name for path in tmp_path.iterdir()] == [name]
