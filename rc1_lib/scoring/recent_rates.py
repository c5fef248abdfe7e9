"""What a limiter has seen of late, for logs and progress bars."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

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
