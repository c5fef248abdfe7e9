"""Prefect's own server application, over an SQLite in which whoever writes waits for a turn.

Two things that Prefect 3.8 does with SQLite cost a run seconds, and now and then a minute:

- A transaction that begins with reading and writes later is refused at once ("database is locked") when somebody else
  has written in between. The client asks again two seconds later; beginning one flow behind another was refused every
  second time. Here every transaction takes its turn as it begins, and waits for it.
- What a refused statement leaves behind are cycles that hold its cursor. When Python's collector finds them on the
  thread of the event loop, freeing the cursor waits for the cursor's connection, which may itself be waiting for a
  transaction that only the event loop can end: all of it stands still for the 60 s that SQLite is waited for. Here
  the collector has a thread of its own, which may wait without anybody waiting for it.
"""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prefect.server.api.server import create_app as prefects_app
from prefect.server.database.configurations import AioSqliteConfiguration
from prefect.server.database.dependencies import set_database_config
from prefect.server.utilities.database import get_dialect
from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL

EVERY_S = 1.0
"""How often what is young is looked through; a second of a run leaves a few thousand objects."""
WHOLE = 60
"""Every so many times all that was made since the start is looked through."""


class InTurn(AioSqliteConfiguration):
    """Prefect's SQLite, of whose transactions each has the right to write from its begin."""

    @asynccontextmanager
    async def begin_transaction(self, session: Any, with_for_update: bool = False) -> AsyncGenerator[Any, None]:
        """Begin a transaction that may write at once, or wait until it may, and end it with the block."""
        async with super().begin_transaction(session, with_for_update=True) as transaction:
            yield transaction


def collect_apart() -> threading.Event:
    """Collect what becomes garbage in this process in a thread of its own, and nowhere else from now on.

    Returns:
        What may be set by whoever wants it collected at once.
    """
    gc.disable()
    gc.freeze()
    wanted = threading.Event()

    def collecting() -> None:
        for turn in itertools.count(1):
            wanted.wait(EVERY_S)
            wanted.clear()
            gc.collect(1 if turn % WHOLE else 2)

    threading.Thread(target=collecting, name="collector", daemon=True).start()
    return wanted


def create_app() -> FastAPI:
    """The application that the environment describes; any other database than SQLite is Prefect's as it is."""
    address = PREFECT_API_DATABASE_CONNECTION_URL.value()
    if get_dialect(address).name == "sqlite":
        set_database_config(InTurn(connection_url=address))
        collect_apart()
    return prefects_app()
