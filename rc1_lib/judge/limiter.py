"""Rate limiter for a provider with unknown limits: one queue, a token bucket, and a bound on the requests under way.

A request waits until nothing is paused, a place is free and a token has come. Tokens come at a pace that adapts, the
number of places adapts as well; both learn from 429s, and from those only that a limit explains
(`rc1_lib.judge.pacing`). The places also learn from replies that never came.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rc1_lib.judge.pacing import Background, ConcurrencyBound, Pace

WINDOW_S = 60.0
"""How far back the rates and latencies reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRates:
    """A snapshot. Rates and latencies are of the last minute, counts are of all time.

    Attributes:
        rps: requests ended per second.
        share_429: share of the answered and refused ones that were refused with a 429; 0 when there were none.
        avg_latency_ms: mean latency of the answered ones; None when there were none.
        p95_latency_ms: their 95th percentile (nearest rank); None when there were none.
        in_flight: requests under way now.
        concurrency: how many may be, now.
        rate: the pace now, requests per second.
        requests: requests sent so far.
        throttled: 429s so far.
    """

    rps: float = 0.0
    share_429: float = 0.0
    avg_latency_ms: float | None = None
    p95_latency_ms: float | None = None
    in_flight: int = 0
    concurrency: int = 0
    rate: float = 0.0
    requests: int = 0
    throttled: int = 0


@dataclass(slots=True, eq=False)
class Permit:
    """Leave to send one request.

    Report once, within the block, how it ended. Without a report (the request was cancelled) only its place is given
    back.
    """

    _limiter: Limiter
    level: int
    """How many requests were under way once it was sent, itself included."""
    calm: bool
    """Whether the pace was one that no limit that is known would have refused."""
    episode: int
    """How many refusals had been acted upon before it was sent."""
    _reported: bool = field(default=False)

    def answered(self, latency_s: float) -> None:
        """The provider took the request, whatever it replied.

        Args:
            latency_s: seconds from sending it to the last byte of the reply.
        """
        self._report()
        self._limiter._answered(self, latency_s)

    def throttled(self, retry_after: float | None) -> None:
        """The provider refused it with a 429.

        Args:
            retry_after: seconds until which it wants nothing sent; None when it does not say.
        """
        self._report()
        self._limiter._throttled(self, retry_after)

    def failed(self, retry_after: float | None = None, *, late: bool = False) -> None:
        """It ended in a way that says nothing about the pace: a reset, a timeout, a 5xx.

        Args:
            retry_after: seconds until which the provider wants nothing sent, as a 503 may say; None when it does not.
            late: whether no reply came in time.
        """
        self._report()
        self._limiter._failed(self, retry_after, late)

    def _report(self) -> None:
        if self._reported:
            raise RuntimeError("this permit has been reported on already; take a new slot for every attempt")
        self._reported = True


class Limiter:
    """Paces requests on one event loop, in the order in which they asked.

    The token bucket holds a single token and is written here: `aiolimiter.AsyncLimiter` has a capacity that is also its
    rate, starts full, measures the rate once when it is made, reads the loop's clock and knows neither pauses nor
    places. A larger bucket would send bursts after each wait for a place, and a server that allows none refuses them.
    """

    def __init__(
        self,
        *,
        rps: float,
        max_rps: float,
        concurrency: tuple[int, int],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """A limiter that has sent nothing yet.

        Args:
            rps: requests per second to start with.
            max_rps: the most that it may rise to.
            concurrency: the least and the most requests that may be allowed under way at once.
            clock: seconds from a clock that never goes back.
            sleep: waits for so many seconds of that clock.
        """
        self._clock, self._sleep = clock, sleep
        self._pace = Pace(rps, max_rps)
        self._places = ConcurrencyBound(*concurrency)
        self._background = Background()
        self._began = clock()
        # Of the last minute: when it ended, after which latency, and whether with a 429.
        self._ended: deque[tuple[float, float | None, bool]] = deque()
        self._requests = self._throttles = 0
        self._turn = asyncio.Lock()  # wakes its waiters in the order in which they came; its holder is first in line
        self._freed = asyncio.Event()
        self._next_token = -math.inf
        self._resume_at = -math.inf
        self._in_flight = 0
        self._episode = 0

    def paused_for(self) -> float:
        """Seconds until anything may be sent again, as the provider asked; 0 when nothing is paused."""
        return max(0.0, self._resume_at - self._clock())

    def stats(self) -> RecentRates:
        """What went on in the last minute, and where pace and bound are now."""
        now = self._clock()
        self._forget(now)
        latencies = sorted(latency for _, latency, _ in self._ended if latency is not None)
        refused = sum(throttled for _, _, throttled in self._ended)
        judged = len(latencies) + refused
        span = min(WINDOW_S, now - self._began)
        return RecentRates(
            rps=len(self._ended) / span if span > 0 else 0.0,
            share_429=refused / judged if judged else 0.0,
            avg_latency_ms=1000.0 * sum(latencies) / len(latencies) if latencies else None,
            p95_latency_ms=1000.0 * latencies[math.ceil(0.95 * len(latencies)) - 1] if latencies else None,
            in_flight=self._in_flight,
            concurrency=self._places.bound,
            rate=self._pace.rate,
            requests=self._requests,
            throttled=self._throttles,
        )

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Permit]:
        """Wait for leave to send one request, and hold its place for as long as the block runs."""
        permit = await self._admit()
        try:
            yield permit
        finally:
            self._in_flight -= 1
            self._freed.set()

    async def _admit(self) -> Permit:
        # Whoever is first in line does the waiting, and looks again after every wait: a timer may fire early, a pause
        # may have been prolonged. It takes place and token in one step without an await, so a cancelled wait has
        # nothing to give back but its turn, which the lock does.
        async with self._turn:
            first_since = self._clock()
            paced = False
            while True:
                now = self._clock()
                if now < self._resume_at:
                    await self._sleep(self._resume_at - now)
                    first_since = self._clock()
                elif self._in_flight >= self._places.bound:
                    self._freed.clear()
                    await self._freed.wait()
                    paced = False
                elif now < self._next_token:
                    await self._sleep(self._next_token - now)
                    paced = True
                else:
                    break
            calm = self._pace.is_calm
            self._pace.sent(now - first_since, paced=paced)
            self._next_token = now + 1.0 / self._pace.rate
            self._in_flight += 1
            self._requests += 1
            return Permit(self, level=self._in_flight, calm=calm, episode=self._episode)

    def _answered(self, permit: Permit, latency_s: float) -> None:
        self._count(self._clock(), latency_s)
        if permit.episode == self._episode:
            self._background.answered(calm=permit.calm)
            self._pace.background = self._background.share
            self._places.answered(permit.level)

    def _throttled(self, permit: Permit, retry_after: float | None) -> None:
        now = self._clock()
        self._throttles += 1
        self._count(now, None, throttled=True)
        self._pause(now, retry_after)
        # What was on its way when the last refusal came is about the old pace and bound; acting on each would cut for
        # one excess many times over (compare the recovery point of RFC 6582).
        if permit.episode != self._episode:
            return
        had_background = self._background.share > 0.0
        of_limit = self._background.refused(calm=permit.calm and self._places.has_admitted(permit.level))
        self._pace.background = share = self._background.share
        if share and not had_background:
            self._start_episode()
            self._pace.lowered_in_vain()
        elif of_limit or self._places.is_full(permit.level, share):
            self._start_episode()
            if not self._places.refused(permit.level):
                self._pace.refused(in_doubt=self._background.is_suspected)
                self._next_token = now + 1.0 / self._pace.rate
        else:
            self._pace.refused_at_random()

    def _start_episode(self) -> None:
        self._episode += 1
        self._background.acted()

    def _failed(self, permit: Permit, retry_after: float | None, late: bool) -> None:
        now = self._clock()
        self._count(now, None)
        self._pause(now, retry_after)
        if late and permit.episode == self._episode and self._places.late():
            self._start_episode()

    def _pause(self, now: float, retry_after: float | None) -> None:
        if retry_after is not None and retry_after > 0:
            self._resume_at = max(self._resume_at, now + retry_after)

    def _count(self, now: float, latency_s: float | None, *, throttled: bool = False) -> None:
        self._ended.append((now, latency_s, throttled))
        self._forget(now)

    def _forget(self, now: float) -> None:
        while self._ended and self._ended[0][0] <= now - WINDOW_S:
            self._ended.popleft()
