"""Calling what starts an event loop of its own from where one is running already, as in every notebook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Result = TypeVar("Result")


def off_the_loop(call: Callable[[], Result]) -> Result:
    """What `call` gives: worked out here, or in a thread of its own while this one's event loop runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(max_workers=1) as aside:
        return aside.submit(copy_context().run, call).result()
