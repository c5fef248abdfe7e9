"""Prefect's own server application, over an SQLite in which whoever writes waits for a turn.

Prefect 3.8 begins a transaction with reading. If somebody else has written by the time it writes, SQLite refuses it at
once ("database is locked"): the client asks again two seconds later, and what a refused statement leaves can
stop the event loop for a minute (docs/experiments/preflight-time.md). Here every transaction may write as it begins.
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
    """Prefect's SQLite, in which each transaction may write from its beginning."""

    @asynccontextmanager
    async def begin_transaction(self, session: Any, with_for_update: bool = False) -> AsyncGenerator[Any, None]:
        """Begin a transaction that may write at once, or wait until it may, and end it with the block."""
        async with super().begin_transaction(session, with_for_update=True) as transaction:
            yield transaction


def create_app() -> FastAPI:
    """The application that the environment describes; any other database than SQLite is Prefect's as it is."""
    address = PREFECT_API_DATABASE_CONNECTION_URL.value()
    if get_dialect(address).name == "sqlite":
        set_database_config(InTurn(connection_url=address))
    return prefects_app()
