"""What an idempotent gateway keeps: one reply for each key, waited for while it is being worked on."""

from __future__ import annotations

import asyncio

from rc1_lib.testing.judge_server.connection import Response


class Replies:
    """Replies by idempotency key. Used on one event loop."""

    def __init__(self) -> None:
        """Start with none."""
        self._by_key: dict[str, asyncio.Future[Response | None]] = {}

    async def earlier(self, key: str) -> Response | None:
        """The reply to an earlier request with this key, waiting for one that is being worked on.

        Returns:
            The reply; or None, and then it is the caller who works on it and has to `settle` it.
        """
        while (working := self._by_key.get(key)) is not None:
            # Shielded: a waiter that is cancelled must not cancel the reply for the others.
            response = await asyncio.shield(working)
            if response is not None:
                return response
        self._by_key[key] = asyncio.get_running_loop().create_future()
        return None

    def settle(self, key: str, response: Response | None) -> None:
        """Keep the reply, or, where none was produced (None), leave it to the next request with this key."""
        working = self._by_key[key]
        if response is None:
            del self._by_key[key]
        working.set_result(response)
