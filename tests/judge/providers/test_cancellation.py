"""A cancelled call raises CancelledError and leaves no connection open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from rc1_lib.judge.calls import AttemptOutcome, CallFailedError
from rc1_lib.judge.providers import open_provider
from tests.judge_server import Behaviour, FaultKind, JudgeServer, running

Make = Callable[..., Any]


async def _until(condition: Callable[[], bool]) -> bool:
    for _ in range(6000):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False


async def _all_closed(server: JudgeServer) -> bool:
    return await _until(lambda: server.stats().open_connections == 0)


@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_a_call_that_times_out_closes_its_connection(name: str, ask: Make, settings: Make) -> None:
    async def wait() -> None:
        provider = open_provider(settings(name, server, timeout_s=0.2))
        with pytest.raises(CallFailedError) as caught:
            await provider.ask(ask())
        assert caught.value.fault is AttemptOutcome.TIMEOUT
        assert await _all_closed(server)
        await provider.aclose()

    with running(Behaviour(delay="zero", faults={FaultKind.SLOW_BODY: 1.0})) as server:
        asyncio.run(wait())


@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_successive_calls_share_one_connection(name: str, ask: Make, settings: Make) -> None:
    async def follow() -> None:
        provider = open_provider(settings(name, server))
        for _ in range(5):
            await provider.ask(ask())
        assert server.stats().open_connections == 1
        await provider.aclose()
        assert await _all_closed(server)

    with running(Behaviour(delay="zero")) as server:
        asyncio.run(follow())
