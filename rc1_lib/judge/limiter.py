"""Rate limiter for a provider with unknown limits: one queue, a token bucket, and 2 to 8 requests in flight.

A request waits until the provider's pause is over, a slot is free and a token is available. The pace of the tokens
grows slowly, then ever faster, until a 429 cuts it. A 429 of more requests in flight than were admitted since the last
cut takes a slot instead. Some providers refuse a share of requests at any pace: where many cuts in a row change
nothing, that share is believed for a while, and only a larger one cuts.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

WINDOW_S = 60.0
"""The window of the rates and latencies, in seconds."""
_CUT, _NEXT_CUT, _STEEP_CUT, _NEAR = 0.93, 0.85, 0.7, 30
"""What a cut leaves of the pace: usually, within so many requests of the last cut, and of the first steep rise."""
_SLOWEST = 0.1
"""Requests per second below which the pace does not fall, so that it notices when a provider recovers."""
_START, _LEAST_GROWTH, _FASTER = 0.1, 0.0005, 1.02
"""The share by which a request raises the pace: at the start, at least, and how it grows; a cut quarters it."""
_LEAST_A_SECOND = 0.001
"""The least by which a second raises the pace, in requests per second: from a slow pace, requests take long."""
_FORGOTTEN, _IN_VAIN = 0.985, 0.4
"""The pace that cuts began at counts less with each; if less than this share of it is left, they should have helped."""
_MOST_AT_RANDOM = 0.3
_BELIEVED = 1000
"""Requests for which a share refused at random is believed; then it is measured again."""
_PROOF = 4.0
"""Refusals beyond what that share explains that show a limit."""
_HOLDS = (32, 128)
"""Answers before a slot that was refused is tried again: the first time, and from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentRates:
    """Figures of the last minute; a latency is None without answers."""

    rps: float = 0.0
    """Requests ended per second."""
    share_429: float = 0.0
    avg_latency_ms: float | None = None
    p95_latency_ms: float | None = None
    in_flight: int = 0
    concurrency: int = 0
    """Requests that may be in flight now."""
    rate: float = 0.0
    """The current pace, requests per second."""


@dataclass(slots=True, eq=False)
class Permit:
    """Permission to send one request; report once, within the block, how it ended (not at all if cancelled)."""

    _limiter: Limiter
    level: int
    """Requests in flight once it was sent, itself included."""
    cuts: int
    """Cuts before it was sent: a 429 from before the last cut says nothing about the pace since."""
    _reported: bool = field(default=False)

    def answered(self, latency_s: float) -> None:
        """Report that the provider accepted the request, whatever it replied, after `latency_s` seconds."""
        self._report()
        self._limiter._answered(self, latency_s)

    def throttled(self, retry_after: float | None) -> None:
        """Report a 429; `retry_after` are the seconds for which the provider wants no requests, if it says so."""
        self._report()
        self._limiter._throttled(self, retry_after)

    def failed(self, retry_after: float | None = None, *, late: bool = False) -> None:
        """Report an end that says nothing about the pace, as a 5xx; `late` if the reply did not come in time."""
        self._report()
        self._limiter._failed(self, retry_after, late)

    def _report(self) -> None:
        if self._reported:
            raise RuntimeError("the end of this request was reported before; take a new slot for every attempt")
        self._reported = True


class Limiter:
    """Paces requests on one event loop, first come, first served."""

    def __init__(
        self, *, rps: float, max_rps: float, concurrency: tuple[int, int],
        clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        """Start at `rps` requests per second, at most `max_rps`; `concurrency` bounds the requests in flight."""
        self._clock, self._sleep, self._began = clock, sleep, clock()
        self._rate, self._top, self._growth = rps, max_rps, _START
        (self._least, self._bound), self._most = concurrency, concurrency[1]
        self._refused_at, self._hold, self._held, self._late = self._most + 1, 0, 0, 0
        self._admitted = self._cuts = self._since_cut = 0
        self._fell_from, self._sent, self._refused = rps, 1, 0
        self._at_random, self._believed, self._evidence = 0.0, 0, 0.0
        # Requests of the last minute: time of their end, latency, whether with a 429.
        self._ended: deque[tuple[float, float | None, bool]] = deque()
        self._in_flight = 0
        self._turn = asyncio.Lock()  # wakes its waiters in order of arrival; its holder is first in the queue
        self._freed = asyncio.Event()
        self._next_token = self._resume_at = -math.inf

    def paused_for(self) -> float:
        """Return the seconds left of the pause that the provider asked for; 0 without one."""
        return max(0.0, self._resume_at - self._clock())

    def stats(self) -> RecentRates:
        """Return the figures of the last minute and the current pace and bound."""
        now = self._clock()
        self._forget(now)
        latencies = sorted(latency for _, latency, _ in self._ended if latency is not None)
        refused = sum(throttled for _, _, throttled in self._ended)
        judged, span = len(latencies) + refused, min(WINDOW_S, now - self._began)
        return RecentRates(
            rps=len(self._ended) / span if span > 0 else 0.0,
            share_429=refused / judged if judged else 0.0,
            avg_latency_ms=1000.0 * sum(latencies) / len(latencies) if latencies else None,
            p95_latency_ms=1000.0 * latencies[math.ceil(0.95 * len(latencies)) - 1] if latencies else None,
            in_flight=self._in_flight, concurrency=self._bound, rate=self._rate,
        )  # fmt: skip

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
        # Only the first in the queue waits for pause, slot and token, and checks again after every wait: a timer may
        # fire early, a pause become longer. It takes slot and token without an await, so a cancelled wait leaks none.
        async with self._turn:
            paced = False
            while True:
                now = self._clock()
                if now < self._resume_at:
                    await self._sleep(self._resume_at - now)
                elif self._in_flight >= self._bound:
                    self._freed.clear()
                    await self._freed.wait()
                    paced = False
                elif now < self._next_token:
                    await self._sleep(self._next_token - now)
                    paced = True
                else:
                    break
            if paced:  # a pace that is not used is not tried either
                self._rate = min(self._rate * (1.0 + self._growth), self._top)
                self._growth = min(self._growth * _FASTER, _START)
            self._next_token = now + 1.0 / self._rate  # one token: a bucket of more would send bursts
            self._in_flight += 1
            return Permit(self, level=self._in_flight, cuts=self._cuts)

    def _answered(self, permit: Permit, latency_s: float) -> None:
        self._count(latency_s)
        if permit.cuts != self._cuts:
            return
        self._late, self._admitted = 0, max(self._admitted, permit.level)
        if permit.level >= self._refused_at:
            self._refused_at, self._hold = self._most + 1, 0
        if permit.level >= self._bound < self._most:
            self._held += 1
            if self._held > (self._hold if self._bound + 1 == self._refused_at else 0):
                self._bound, self._held = self._bound + 1, 0

    def _throttled(self, permit: Permit, retry_after: float | None) -> None:
        self._count(None, throttled=True)
        self._pause(retry_after)
        if permit.cuts != self._cuts:
            return
        self._evidence += 1.0
        if self._at_random and self._evidence < _PROOF:
            return
        level, admitted = permit.level, self._admitted
        if level > max(admitted, self._least):
            self._bound, self._held = min(self._bound, level - 1), 0
            if admitted == level - 1:  # a limit on the pace rarely stops just there
                self._refused_at, self._hold = level, _HOLDS[self._hold > 0]
                self._start_anew()
                return
        self._cut_pace()

    def _failed(self, permit: Permit, retry_after: float | None, late: bool) -> None:
        self._count(None)
        self._pause(retry_after)
        # A server that accepts more than it works on refuses nothing: requests time out in its queue.
        if late and permit.cuts == self._cuts:
            self._late += 1
            if self._late >= max(2, self._bound // 2) and self._bound > self._least:
                self._bound = max(self._least, self._bound // 2)
                self._refused_at, self._hold, self._held, self._late = self._bound + 1, _HOLDS[1], 0, 0
                self._start_anew()

    def _cut_pace(self) -> None:
        steep = self._growth >= _START  # then the pace is far above the limit
        left = _STEEP_CUT if steep else _NEXT_CUT if self._since_cut < _NEAR else _CUT
        self._rate = max(self._rate * left, min(self._rate, _SLOWEST))
        self._fell_from *= _FORGOTTEN
        if steep or self._fell_from <= self._rate:
            self._fell_from, self._sent, self._refused = self._rate, 1, 1
        if self._rate < _IN_VAIN * self._fell_from:
            share = self._refused / self._sent
            if share <= _MOST_AT_RANDOM:
                self._at_random, self._believed, self._rate = share, _BELIEVED, self._fell_from
            self._fell_from, self._sent, self._refused = self._rate, 1, 1
        self._next_token = self._clock() + 1.0 / self._rate
        self._start_anew()
        if self._believed == _BELIEVED:
            self._growth = _START

    def _start_anew(self) -> None:
        self._cuts += 1
        self._admitted, self._since_cut, self._evidence = 0, 0, 0.0
        self._growth = max(self._growth / 4.0, _LEAST_GROWTH, _LEAST_A_SECOND / self._rate)

    def _pause(self, retry_after: float | None) -> None:
        if retry_after is not None and retry_after > 0:
            self._resume_at = max(self._resume_at, self._clock() + retry_after)

    def _count(self, latency_s: float | None, *, throttled: bool = False) -> None:
        now = self._clock()
        self._ended.append((now, latency_s, throttled))
        self._forget(now)
        self._since_cut += 1
        self._sent += 1
        self._refused += throttled
        if self._at_random:
            self._evidence = max(0.0, self._evidence - 1.3 * self._at_random - 0.04)
            self._believed -= 1
            if not self._believed:
                self._at_random = 0.0

    def _forget(self, now: float) -> None:
        while self._ended and self._ended[0][0] <= now - WINDOW_S:
            self._ended.popleft()
