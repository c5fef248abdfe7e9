"""Prefect's own server application, for this machine only, with an SQLite database in which writers wait for a turn.

It ends with the process that started it, even if that is killed.

The application proves that it knows its password, and answers only to names of this machine: a web page whose name an
attacker points to 127.0.0.1 would otherwise be of the same origin.

Prefect 3.8 begins a transaction by reading. If another connection has written before it writes, SQLite rejects the
write at once ("database is locked"). The client then retries two seconds later, and the failed statement can block the
event loop for a minute (docs/experiments/preflight-time.md). Here every transaction takes the write lock as it begins.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import PlainTextResponse
from prefect.server.api.server import create_app as prefects_app
from prefect.server.database.configurations import AioSqliteConfiguration
from prefect.server.database.dependencies import set_database_config
from prefect.server.utilities.database import get_dialect
from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, PREFECT_SERVER_API_AUTH_STRING
from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.access import HOST, PROOF, proof_of
from deployments.server import PARENT


class InTurn(AioSqliteConfiguration):
    """Prefect's SQLite, in which each transaction takes the write lock as it begins."""

    @asynccontextmanager
    async def begin_transaction(self, session: Any, with_for_update: bool = False) -> AsyncGenerator[Any, None]:
        """Begin a transaction with the write lock, waiting for it if necessary, and end it with the block."""
        async with super().begin_transaction(session, with_for_update=True) as transaction:
            yield transaction


def create_app() -> ASGIApp:
    """Return the application for the database and password in the environment; only SQLite gets special treatment."""
    address, password = PREFECT_API_DATABASE_CONNECTION_URL.value(), PREFECT_SERVER_API_AUTH_STRING.value()
    assert password, "a server without a password would run what anyone asks for"
    threading.Thread(target=_end_with, args=(int(os.environ[PARENT]),), daemon=True).start()
    if get_dialect(address).name == "sqlite":
        set_database_config(InTurn(connection_url=address))
    guarded: ASGIApp = TrustedHostMiddleware(_proving(prefects_app(), password), allowed_hosts=[HOST, "localhost"])
    return guarded


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _proving(app: ASGIApp, password: str) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == PROOF:
            await PlainTextResponse(proof_of(password, scope["query_string"].decode("latin-1")))(scope, receive, send)
        else:
            await app(scope, receive, send)

    return answer
