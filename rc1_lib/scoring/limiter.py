"""Rate limiter for a provider with unknown limits: a token bucket, and a bound on the requests under way.

Pace and bound adapt by AIMD: they rise slowly, and a 429 lowers them at once. A limit refuses what exceeds it and
nothing else, so a 429 at a pace well below the one that was refused last says that the limit fell; after several of
them the refusals are *random*, and from then on only more refusals than that share lower the pace.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

RECOVERY = 140
"""Requests in which the pace rises to where it was refused, and that the bound waits for before it rises to there."""
CUT = 0.8
"""The pace after a 429, as a share of the pace before."""
DOUBLING = 20
"""Requests in which the pace doubles, before the first 429 and once one is overdue: after `2 * RECOVERY` requests, or
`OVERDUE_S`. The bound waits for so many elsewhere."""
OVERDUE_S = 120.0
SLOWEST = 0.1
"""Requests a second below which the pace does not fall, unless it started there."""
CALM = 0.95
"""Below this share of the pace that was refused last, a limit that did not fall refuses nothing."""
MEMORY = 200
"""Calm requests in which what is known of random refusals fades to 1 / e."""
PROOF, DOUBT = 3.9, 1.0
"""Calm 429s, faded, that show random refusals; with fewer than the second there are none any more."""
MOST_RANDOM = 0.3
"""A provider that refuses more than this share is spared, whatever its reason."""
EXCESS, EXCESS_COUNT = 0.1, 3.0
"""With random refusals, a limit shows once refusals exceed their share and this one by so many in all."""


class _Pace:
    """Requests a second, by AIMD.

    Attributes:
        rate: now.
        random_share: the share of requests that is refused whatever the pace, as far as known.
    """

    def __init__(self, rate: float, top: float) -> None:
        self.rate = rate
        self._slowest, self._top = min(rate, SLOWEST), top
        self._doubling = True
        self._refused_at = 0.0
        self._step, self._since_cut, self._seconds = 0.0, 0, 0.0
        self._calm_sent = self._calm_refused = 0.0
        self._excess = 0.0
        self.random_share = 0.0

    @property
    def is_calm(self) -> bool:
        """Whether no limit explains a refusal, unless it has fallen."""
        return self.rate < CALM * self._refused_at

    def rise(self) -> None:
        """A request had to wait for the pace."""
        self._since_cut += 1
        self._seconds += 1.0 / self.rate
        if self._doubling or self._since_cut > 2 * RECOVERY or self._seconds > OVERDUE_S:
            self.rate *= 2.0 ** (1.0 / DOUBLING)
        else:
            self.rate += self._step
        self.rate = min(self.rate, self._top)

    def answered(self, *, calm: bool) -> None:
        """A request was admitted."""
        if calm:
            self._count(0.0)
        self._excess = max(0.0, self._excess - self.random_share - EXCESS)

    def is_over_limit(self, *, calm: bool) -> bool:
        """A request was refused; whether a limit did it."""
        if calm:
            self._count(1.0)
        self._excess = max(0.0, self._excess - self.random_share - EXCESS) + 1.0
        return not self.random_share or self._excess >= EXCESS_COUNT

    def cut(self) -> None:
        """Fall below what a limit refused."""
        # Random refusals hide how far the limit was exceeded.
        self._refused_at = CUT * self.rate if self.random_share else self.rate
        self.rate = max(CUT * self._refused_at, self._slowest)
        self._step = (self._refused_at - self.rate) / RECOVERY
        self._since_cut, self._seconds, self._doubling, self._excess = 0, 0.0, False, 0.0

    def search(self) -> None:
        """The refusals of late were not for the pace: rise as at the start."""
        self._doubling, self._excess = True, 0.0

    def _count(self, refused: float) -> None:
        kept = 1.0 - 1.0 / MEMORY
        self._calm_sent = kept * self._calm_sent + 1.0
        self._calm_refused = kept * self._calm_refused + refused
        share = self._calm_refused / self._calm_sent
        if self.random_share:
            self.random_share = min(share, MOST_RANDOM) if self._calm_refused >= DOUBT else 0.0
        elif self._calm_refused >= PROOF and share <= MOST_RANDOM:
            self.random_share = share


class _Places:
    """How many requests may be under way, by AIMD."""

    def __init__(self, least: int, most: int) -> None:
        self.bound = most  # the slowly rising pace lets the number rise slowly, so the first refusal shows the limit
        self._least, self._most = least, most
        self._refused_at = most + 1
        self._admitted = self._held = 0

    def admitted(self, level: int) -> None:
        """A request that was sent as number `level` of those under way was admitted."""
        self._admitted = max(self._admitted, level)
        if level >= self._refused_at:
            self._refused_at = self._most + 1
        if level < self.bound or self.bound == self._most:
            return
        self._held += 1
        if self._held >= (RECOVERY if self.bound + 1 == self._refused_at else DOUBLING):
            self.bound, self._held = self.bound + 1, 0

    def refused(self, level: int) -> bool:
        """One was refused; whether for its number: as many were not admitted since the last refusal."""
        before, self._admitted = self._admitted, 0
        if level <= max(before, self._least):
            return False
        self.bound, self._held = min(self.bound, level - 1), 0
        self._refused_at = level
        return before == level - 1

    def search(self) -> None:
        """The refusals of late were not for the number."""
        self.bound, self._held = self._most, 0


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
    """Whether the pace was well below the one that was refused last."""
    cuts: int
    """How often pace or bound had fallen before it was sent."""
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

    def failed(self, retry_after: float | None = None) -> None:
        """It ended in a way that says nothing about the limits: a reset, a timeout, a 5xx.

        Args:
            retry_after: seconds until which the provider wants nothing sent, as a 503 may say; None when it does not.
        """
        self._report()
        self._limiter._failed(retry_after)

    def _report(self) -> None:
        if self._reported:
            raise RuntimeError("this permit has been reported on already; take a new slot for every attempt")
        self._reported = True


class Limiter:
    """Paces requests on one event loop, in the order in which they asked.

    The token bucket holds a single token: a larger one would send bursts after each wait for a place, and a server that
    allows none refuses them. (`aiolimiter.AsyncLimiter` has a capacity that is also its fixed rate, and no pauses.)
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
        self._pace = _Pace(rps, max_rps)
        self._places = _Places(*concurrency)
        self._tally = Tally(clock())
        self._turn = asyncio.Lock()  # wakes its waiters in the order in which they came; its holder is first in line
        self._freed = asyncio.Event()
        self._next_token = -math.inf
        self._resume_at = -math.inf
        self._in_flight = 0
        self._cuts = 0

    def paused_for(self) -> float:
        """Seconds until anything may be sent again, as the provider asked; 0 when nothing is paused."""
        return max(0.0, self._resume_at - self._clock())

    def stats(self) -> RecentRates:
        """What went on in the last minute, and where pace and bound are now."""
        return self._tally.snapshot(
            self._clock(), in_flight=self._in_flight, concurrency=self._places.bound, rate=self._pace.rate
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
            paced = False
            while True:
                now = self._clock()
                if now < self._resume_at:
                    await self._sleep(self._resume_at - now)
                elif self._in_flight >= self._places.bound:
                    self._freed.clear()
                    await self._freed.wait()
                    paced = False
                elif now < self._next_token:
                    await self._sleep(self._next_token - now)
                    paced = True
                else:
                    break
            permit = Permit(self, level=self._in_flight + 1, calm=self._pace.is_calm, cuts=self._cuts)
            if paced:
                self._pace.rise()
            self._next_token = now + 1.0 / self._pace.rate
            self._in_flight += 1
            self._tally.requests += 1
            return permit

    def _answered(self, permit: Permit, latency_s: float) -> None:
        self._tally.ended(self._clock(), latency_s)
        if permit.cuts == self._cuts:
            self._pace.answered(calm=permit.calm)
            self._places.admitted(permit.level)

    def _throttled(self, permit: Permit, retry_after: float | None) -> None:
        now = self._clock()
        self._tally.ended(now, None, throttled=True)
        self._pause(now, retry_after)
        # What was under way at the last cut was sent at the old pace; acting on each such refusal would cut for one
        # excess many times over (compare the recovery point of RFC 6582).
        if permit.cuts != self._cuts:
            return
        knew = self._pace.random_share > 0.0
        over_limit = self._pace.is_over_limit(calm=permit.calm)
        if self._pace.random_share and not knew:
            self._cuts += 1
            self._pace.search()
            self._places.search()
        elif over_limit:
            self._cuts += 1
            if not self._places.refused(permit.level):
                self._pace.cut()
                self._next_token = now + 1.0 / self._pace.rate

    def _failed(self, retry_after: float | None) -> None:
        now = self._clock()
        self._tally.ended(now, None)
        self._pause(now, retry_after)

    def _pause(self, now: float, retry_after: float | None) -> None:
        if retry_after is not None and retry_after > 0:
            self._resume_at = max(self._resume_at, now + retry_after)


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

    rps: float
    share_429: float
    avg_latency_ms: float | None
    p95_latency_ms: float | None
    in_flight: int
    concurrency: int
    rate: float
    requests: int
    throttled: int


class Tally:
    """Keeps what the snapshot needs: one entry per request that ended in the last minute."""

    def __init__(self, now: float) -> None:
        self._began = now
        self._ended: deque[tuple[float, float | None, bool]] = deque()
        self.requests = 0
        self.throttled = 0

    def ended(self, now: float, latency_s: float | None, *, throttled: bool = False) -> None:
        """A request ended: with an answer after `latency_s`, with a 429, or with neither."""
        self._ended.append((now, latency_s, throttled))
        self.throttled += throttled
        self._forget(now)

    def snapshot(self, now: float, *, in_flight: int, concurrency: int, rate: float) -> RecentRates:
        """Everything as of `now`."""
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
            in_flight=in_flight,
            concurrency=concurrency,
            rate=rate,
            requests=self.requests,
            throttled=self.throttled,
        )

    def _forget(self, now: float) -> None:
        while self._ended and self._ended[0][0] <= now - WINDOW_S:
            self._ended.popleft()
