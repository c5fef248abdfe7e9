"""Call functions that start an event loop while one is already running, as in every notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Result = TypeVar("Result")


def off_the_loop(call: Callable[[], Result]) -> Result:
    """Return the result of `call`, computed in another thread if this one's event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(max_workers=1) as aside:
        return aside.submit(copy_context().run, call).result()
