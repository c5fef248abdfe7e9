"""Over SQLite whoever writes waits for a turn."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from prefect import settings
from prefect.context import refresh_global_settings_context
from prefect.server.database import provide_database_interface
from prefect.server.database.configurations import AioSqliteConfiguration
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from deployments import children, server, server_app
from deployments.server_app import InTurn
from tests.forks import this_interpreter

TABLE = text("CREATE TABLE counted (number INTEGER PRIMARY KEY)")
COUNT = text("SELECT count(*) FROM counted")


def insert(number: int) -> str:
    return f"INSERT INTO counted VALUES ({number})"


def over(database: Path) -> InTurn:
    return InTurn(connection_url=f"sqlite+aiosqlite:///{database}")


async def with_table(configuration: AioSqliteConfiguration) -> AsyncEngine:
    engine = await configuration.engine()
    async with AsyncSession(engine) as session:
        await session.execute(TABLE)
    return engine


def test_two_that_read_before_they_write_are_both_served(tmp_path: Path) -> None:
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
                await asyncio.sleep(0.2)  # where nobody waits for a turn, the other one has written by then
                await session.execute(text(insert(2)))
            await meanwhile
            assert (await session.execute(COUNT)).scalar() == 2
        await engine.dispose()

    asyncio.run(both(over(tmp_path / "one.db")))


def tell_what_is_wired() -> None:
    """As a process: make the application that the environment describes, and tell over which database it works."""
    refresh_global_settings_context()
    server_app.create_app()
    print(type(provide_database_interface().database_config).__name__)


@pytest.mark.parametrize(
    ("address", "wired"),
    [
        ("sqlite+aiosqlite:///{folder}/one.db", "InTurn"),
        ("postgresql+asyncpg://nobody@127.0.0.1:1/none", "AsyncPostgresConfiguration"),
    ],
    ids=["SQLite", "PostgreSQL"],
)
def test_the_application_is_for_sqlite_alone(tmp_path: Path, address: str, wired: str) -> None:
    name = settings.PREFECT_SERVER_DATABASE_CONNECTION_URL.name
    process = this_interpreter(tmp_path / "forks").start(
        "tests.deployments.test_server_app.tell_what_is_wired", environment={name: address.format(folder=tmp_path)}
    )
    assert process.wait(120) == 0, process.told()
    assert process.told() == f"{wired}\n"


class _Started(Exception):
    """In the place of a server."""


def test_a_workspaces_server_is_this_application_and_no_module_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[str]] = []

    def start(command: Sequence[str], *_: object) -> subprocess.Popen[bytes]:
        asked.append(command)
        raise _Started

    monkeypatch.setattr(children, "start", start)
    with pytest.raises(_Started):
        server.start_server(tmp_path, 1)
    (command,) = asked
    assert command[1:4] == ["-P", "-m", "uvicorn"]
    (tmp_path / "click.py").write_text("raise SystemExit(3)")  # uvicorn would import it
    assert subprocess.run([*command[:4], "--version"], cwd=tmp_path, stdout=subprocess.DEVNULL).returncode == 0
    module, _, function = command[command.index("--factory") + 1].partition(":")
    assert getattr(importlib.import_module(module), function) is server_app.create_app
