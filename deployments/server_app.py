"""Prefect's own server application, with an SQLite database in which writers wait for their turn.

Prefect 3.8 begins a transaction by reading. If another connection has written before it writes, SQLite rejects the
write at once ("database is locked"). The client then retries two seconds later, and the failed statement can block the
event loop for a minute (docs/experiments/preflight-time.md). Here every transaction takes the write lock as it begins.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prefect.server.api.server import create_app as prefects_app
from prefect.server.database.configurations import AioSqliteConfiguration
from prefect.server.database.dependencies import set_database_config
from prefect.server.utilities.database import get_dialect
from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL


class InTurn(AioSqliteConfiguration):
    """Prefect's SQLite, in which each transaction takes the write lock as it begins."""

    @asynccontextmanager
    async def begin_transaction(self, session: Any, with_for_update: bool = False) -> AsyncGenerator[Any, None]:
        """Begin a transaction with the write lock, waiting for it if necessary, and end it with the block."""
        async with super().begin_transaction(session, with_for_update=True) as transaction:
            yield transaction


def create_app() -> FastAPI:
    """Return the application for the database in the environment; only SQLite gets special treatment."""
    address = PREFECT_API_DATABASE_CONNECTION_URL.value()
    if get_dialect(address).name == "sqlite":
        set_database_config(InTurn(connection_url=address))
    return prefects_app()
