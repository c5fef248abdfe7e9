"""The server's own count: what was asked, how it ended and what was billed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Stats:
    """A snapshot of the count.

    Attributes:
        requests: requests for a reply, however they ended.
        by_kind: of those that are decided, how: `ok`, a `FaultKind`, `limited_rps`, `limited_concurrent`,
            `unauthorized`, `bad_request` or `replayed`.
        answered: replies that the model produced, each of which is billed, whether or not they still found the client.
        billed_by_key: idempotency key -> how often it was billed.
        attempt_ids: every `X-Client-Request-Id`, in the order of arrival.
        open_connections: connections open now.
        peak_concurrent: most requests that were ever worked on at a time.
        tokens_in: tokens read, of what was billed.
        tokens_out: tokens written, thoughts included, of what was billed.
    """

    requests: int
    by_kind: Mapping[str, int]
    answered: int
    billed_by_key: Mapping[str, int]
    attempt_ids: tuple[str, ...]
    open_connections: int
    peak_concurrent: int
    tokens_in: int
    tokens_out: int


class Tally:
    """Counts on the server's thread, read from any."""

    def __init__(self) -> None:
        """Start at nothing."""
        self._lock = threading.Lock()
        self._requests = self._answered = self._tokens_in = self._tokens_out = 0
        self._open = self._peak = 0
        self._by_kind: Counter[str] = Counter()
        self._billed: Counter[str] = Counter()
        self._attempts: list[str] = []

    def arrived(self, attempt_id: str | None) -> int:
        """Count a request; returns its number, from 1."""
        with self._lock:
            self._requests += 1
            if attempt_id:
                self._attempts.append(attempt_id)
            return self._requests

    def decided(self, kind: str) -> None:
        """Count how a request ends."""
        with self._lock:
            self._by_kind[kind] += 1

    def billed(self, key: str | None, tokens_in: int, tokens_out: int) -> None:
        """Count a reply of the model."""
        with self._lock:
            self._answered += 1
            self._tokens_in += tokens_in
            self._tokens_out += tokens_out
            if key:
                self._billed[key] += 1

    def connections(self, change: int) -> None:
        """Count a connection that opens (1) or closes (-1)."""
        with self._lock:
            self._open += change

    def working(self, count: int) -> None:
        """Take note of how many requests are worked on now."""
        with self._lock:
            self._peak = max(self._peak, count)

    def snapshot(self) -> Stats:
        """The count now."""
        with self._lock:
            return Stats(
                requests=self._requests,
                by_kind=MappingProxyType(dict(self._by_kind)),
                answered=self._answered,
                billed_by_key=MappingProxyType(dict(self._billed)),
                attempt_ids=tuple(self._attempts),
                open_connections=self._open,
                peak_concurrent=self._peak,
                tokens_in=self._tokens_in,
                tokens_out=self._tokens_out,
            )
