"""The hidden limits: a token bucket, and how many requests are worked on at a time."""

from __future__ import annotations


class TokenBucket:
    """Lets in `rate` requests per second and, after a pause, up to `capacity` at once.

    Rate and capacity are given anew each time, so that they can change while the server runs.
    """

    def __init__(self) -> None:
        """Start full."""
        self._level: float | None = None
        self._at = 0.0

    def take(self, rate: float | None, capacity: float, now: float) -> bool:
        """Take one token if there is one.

        Args:
            rate: tokens per second; None takes none and lets everybody in.
            capacity: the most that the bucket holds.
            now: seconds of a clock that never goes back.
        """
        if rate is None:
            self._level = None
            return True
        level = capacity if self._level is None else min(capacity, self._level + rate * (now - self._at))
        self._at = now
        self._level = level - 1.0 if level >= 1.0 else level
        return level >= 1.0


class Slots:
    """Counts the requests that are worked on."""

    def __init__(self) -> None:
        """Start with none."""
        self.taken = 0

    def has_room(self, most: int | None) -> bool:
        """Whether one more may be worked on, `most` being allowed at a time (None: any number)."""
        return most is None or self.taken < most
