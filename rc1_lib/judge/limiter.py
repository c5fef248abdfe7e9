"""Rate limiter for a provider with unknown limits: one queue, a token bucket, and a bound on the requests in flight.

A request waits until the provider's pause is over, a slot is free and a token is available. The pace of the tokens and
the number of slots both adapt: they learn from the 429s that a limit explains (`rc1_lib.judge.pacing`). The number of
slots also learns from replies that never came.
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
"""The window of the rates and latencies, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRates:
    """A snapshot of the limiter. Rates and latencies cover the last minute; counts cover its whole life.

    Attributes:
        rps: requests ended per second.
        share_429: 429s as a share of answered requests and 429s; 0 without either.
        avg_latency_ms: mean latency of answered requests; None without any.
        p95_latency_ms: their 95th percentile (nearest rank); None without any.
        in_flight: requests in flight now.
        concurrency: requests that may be in flight now.
        rate: the current pace, requests per second.
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
    """Permission to send one request.

    Report once, within the block, how the request ended. Without a report (the request was cancelled) the limiter only
    frees its slot.
    """

    _limiter: Limiter
    level: int
    """Requests in flight once it was sent, itself included."""
    calm: bool
    """Whether no known rate limit would have refused the pace."""
    episode: int
    """Number of refusals that the limiter had acted on before the request was sent."""
    _reported: bool = field(default=False)

    def answered(self, latency_s: float) -> None:
        """Report that the provider accepted the request, whatever it replied.

        Args:
            latency_s: seconds from sending the request to the last byte of the reply.
        """
        self._report()
        self._limiter._answered(self, latency_s)

    def throttled(self, retry_after: float | None) -> None:
        """Report that the provider refused the request with a 429.

        Args:
            retry_after: seconds for which the provider wants no requests; None if it does not say.
        """
        self._report()
        self._limiter._throttled(self, retry_after)

    def failed(self, retry_after: float | None = None, *, late: bool = False) -> None:
        """Report an end that says nothing about the pace: a connection reset, a timeout, a 5xx.

        Args:
            retry_after: seconds for which the provider wants no requests, as a 503 may say; None if it does not say.
            late: whether the reply did not come in time.
        """
        self._report()
        self._limiter._failed(self, retry_after, late)

    def _report(self) -> None:
        if self._reported:
            raise RuntimeError("the end of this request was reported before; take a new slot for every attempt")
        self._reported = True


class Limiter:
    """Paces requests on one event loop, first come, first served.

    The token bucket holds a single token: a larger one would send bursts after each wait for a slot, and a server that
    allows no bursts refuses them. It is not `aiolimiter.AsyncLimiter`, whose capacity is also its rate, which starts
    full, fixes its rate when it is created, reads the loop's clock, and has neither pauses nor slots.
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
        """Create a limiter.

        Args:
            rps: initial requests per second.
            max_rps: highest requests per second.
            concurrency: lowest and highest bound on the requests in flight.
            clock: returns seconds and never goes back.
            sleep: waits for the given seconds of that clock.
        """
        self._clock, self._sleep = clock, sleep
        self._pace = Pace(rps, max_rps)
        self._concurrency = ConcurrencyBound(*concurrency)
        self._background = Background()
        self._began = clock()
        # Requests of the last minute: time of their end, latency, whether with a 429.
        self._ended: deque[tuple[float, float | None, bool]] = deque()
        self._requests = self._throttles = 0
        self._turn = asyncio.Lock()  # wakes its waiters in order of arrival; its holder is first in the queue
        self._freed = asyncio.Event()
        self._next_token = -math.inf
        self._resume_at = -math.inf
        self._in_flight = 0
        self._episode = 0

    def paused_for(self) -> float:
        """Return the seconds left of the pause that the provider asked for; 0 without one."""
        return max(0.0, self._resume_at - self._clock())

    def stats(self) -> RecentRates:
        """Return the figures of the last minute and the current pace and bound."""
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
            concurrency=self._concurrency.bound,
            rate=self._pace.rate,
            requests=self._requests,
            throttled=self._throttles,
        )

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Permit]:
        """Wait until one request may be sent, and hold its slot while the block runs."""
        permit = await self._admit()
        try:
            yield permit
        finally:
            self._in_flight -= 1
            self._freed.set()

    async def _admit(self) -> Permit:
        # Only the request first in the queue waits for pause, slot and token. It checks again after every wait: a timer
        # may fire early, a pause may have become longer. It takes slot and token in one step without an await, so a
        # cancelled wait has only its turn to give back, which the lock does.
        async with self._turn:
            first_since = self._clock()
            paced = False
            while True:
                now = self._clock()
                if now < self._resume_at:
                    await self._sleep(self._resume_at - now)
                    first_since = self._clock()
                elif self._in_flight >= self._concurrency.bound:
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
            self._concurrency.answered(permit.level)

    def _throttled(self, permit: Permit, retry_after: float | None) -> None:
        now = self._clock()
        self._throttles += 1
        self._count(now, None, throttled=True)
        self._pause(now, retry_after)
        # Requests in flight when the last refusal came tell about the old pace and bound; acting on each would cut many
        # times for one excess (compare the recovery point of RFC 6582).
        if permit.episode != self._episode:
            return
        had_background = self._background.share > 0.0
        of_limit = self._background.refused(calm=permit.calm and self._concurrency.has_admitted(permit.level))
        self._pace.background = share = self._background.share
        if share and not had_background:
            self._start_episode()
            self._pace.measure_again()
        elif of_limit or self._concurrency.is_full(permit.level, share):
            self._start_episode()
            if not self._concurrency.refused(permit.level):
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
        if late and permit.episode == self._episode and self._concurrency.late():
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
