"""A provider with hidden limits on a virtual clock: minutes pass in milliseconds, and runs are deterministic."""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rc1_lib.judge.limiter import Limiter

Result = TypeVar("Result")
SIGMA = 0.4
"""Sigma of the lognormal latencies."""


class _NoWait(selectors.DefaultSelector):
    """Advances the clock instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: every task waits and no timer is set")
        self.now += max(timeout, 0.0)
        return []


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _NoWait()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def run_virtual(main: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Do what `asyncio.run(main())` does, on a virtual clock."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main())


def now() -> float:
    """The virtual clock."""
    return asyncio.get_running_loop().time()


def limiter(*, rps: float = 4.0, max_rps: float = 50.0, concurrency: tuple[int, int] = (2, 8)) -> Limiter:
    """A limiter on the virtual clock."""
    return Limiter(rps=rps, max_rps=max_rps, concurrency=concurrency, clock=now)


@dataclass(frozen=True)
class Limits:
    """What a provider allows for `seconds`: requests per second, and concurrent requests.

    `at_random` is the share that it refuses at any pace, before it checks a limit.
    """

    seconds: float
    rps: float = math.inf
    concurrent: int = 1000
    at_random: float = 0.0

    @property
    def burst(self) -> float:
        return max(1.0, self.rps / 4.0)


class Provider:
    """Admits or refuses requests and counts both."""

    def __init__(self, limits: Limits, latency_s: float, rng: random.Random) -> None:
        self._rng, self._latency_s = rng, latency_s
        self._level, self._at = limits.burst, now()
        self.limits = limits
        self.busy = self.peak = self.admitted = self.refused = 0
        self.busy_s = 0.0

    def change(self, limits: Limits) -> None:
        self._refill()
        self.limits, self._level = limits, min(self._level, limits.burst)

    async def ask(self) -> bool:
        """Send a request and return whether it was admitted."""
        await self._travel()
        self._refill()
        chance = self.limits.at_random > 0.0 and self._rng.random() < self.limits.at_random
        if chance or self.busy >= self.limits.concurrent or self._level < 1.0:
            self.refused += 1
            await self._travel()
            return False
        self._level -= 1.0
        self.admitted += 1
        self.busy += 1
        self.peak = max(self.peak, self.busy)
        latency_s = self._rng.lognormvariate(math.log(self._latency_s), SIGMA)
        await asyncio.sleep(latency_s)
        self.busy -= 1
        self.busy_s += latency_s
        await self._travel()
        return True

    def _refill(self) -> None:
        if math.isinf(self.limits.rps):
            self._level = math.inf
        else:
            self._level = min(self.limits.burst, self._level + self.limits.rps * (now() - self._at))
        self._at = now()

    async def _travel(self) -> None:
        await asyncio.sleep(0.001 + self._rng.expovariate(1000.0))


@dataclass(frozen=True)
class Outcome:
    """The result of a campaign.

    `utilisation` is the used share of what was allowed: of the requests if the rate was limited, else of the time of
    the slots (of 8 if the provider allows more).
    """

    utilisation: float
    share_429: float
    peak: int
    admitted: int


def campaign(phases: Sequence[Limits], *, latency_s: float) -> Outcome:
    """Send as much as a limiter admits while a provider goes through phases. Refused requests are retried."""

    async def main() -> Outcome:
        rng = random.Random(0)
        provider, gate = Provider(phases[0], latency_s, rng), limiter()

        async def work() -> None:
            backoff = 0.5
            while True:
                async with gate.slot() as permit:
                    sent = now()
                    if admitted := await provider.ask():
                        permit.answered(now() - sent)
                    else:
                        permit.throttled(None)
                if admitted:
                    backoff = 0.5
                else:
                    await asyncio.sleep(rng.uniform(0.0, backoff))
                    backoff = min(8.0, 2.0 * backoff)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work()) for _ in range(40)]
            for phase in phases:
                provider.change(phase)
                await asyncio.sleep(phase.seconds)
            for task in tasks:
                task.cancel()
        if any(math.isinf(phase.rps) for phase in phases):
            allowed, used = sum(min(phase.concurrent, 8) * phase.seconds for phase in phases), provider.busy_s
        else:
            allowed, used = sum(phase.rps * phase.seconds for phase in phases), provider.admitted
        return Outcome(
            used / allowed,
            provider.refused / (provider.admitted + provider.refused),
            provider.peak,
            provider.admitted,
        )

    return run_virtual(main)
