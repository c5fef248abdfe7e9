"""How many requests to have under way: a bound that finds a hidden limit on concurrency.

It falls below a number that was refused and rises by one, as in Chiu and Jain (1989), but with a memory: the refused
number is tried again after 32 requests and then after every 128, so that under a limit that does not move
one request in 128 is refused.
"""

from __future__ import annotations

FIRST_HOLD = 32
HOLD_GROWTH = 4
LONGEST_HOLD = 128
LATE = 2
"""Fewer requests in a row without a reply in time may be chance, however few are under way."""
CHANCE = 0.01
"""So unlikely has it to be that numbers refused in a row were refused at random."""


class ConcurrencyBound:
    """A bound on requests under way; tell it of answers and refusals, with how many were under way when each was sent.

    Only news counts: answers and refusals of requests that were sent after the last refusal was known.

    Attributes:
        bound: how many may be under way, now.
    """

    def __init__(self, least: int, most: int) -> None:
        """Start at `most`: it is the pace that lets the number rise slowly, so the first refusal shows the limit."""
        self.bound = most
        self._least, self._most = least, most
        self._highest_answered = 0
        self._refused_at = most + 1
        self._hold, self._held = 1, 0
        self._strikes = 0
        self._late = 0

    def answered(self, level: int) -> None:
        """A request sent as number `level` of those under way was admitted."""
        self._late = 0
        if level > self._highest_answered:
            self._highest_answered, self._strikes = level, 0
        if level >= self._refused_at:
            self._refused_at, self._hold = self._most + 1, 1
        if level < self.bound or self.bound == self._most:
            return
        self._held += 1
        if self._held >= (self._hold if self.bound + 1 == self._refused_at else 1):
            self.bound += 1
            self._held = 0

    def has_admitted(self, level: int) -> bool:
        """Whether a request sent as number `level` is no more than was admitted since the last refusal."""
        return level <= max(self._highest_answered, self._least)

    def is_full(self, level: int, background: float) -> bool:
        """Whether refusing number `level` is a limit's doing, where a share of requests is refused at random.

        A limit refuses every request above it, chance hardly ever refuses several numbers not admitted yet in a row.
        """
        if self.has_admitted(level):
            return False
        self._strikes += 1
        return background**self._strikes < CHANCE

    def late(self) -> bool:
        """A request had no reply in time; half as many in a row as may be under way halve the bound.

        A server that takes more than it works on refuses nothing: what waits there too long is worked on in vain.

        Returns:
            Whether the bound was lowered.
        """
        self._late += 1
        if self._late < max(LATE, self.bound // 2) or self.bound == self._least:
            return False
        self.bound = max(self._least, self.bound // 2)
        self._refused_at, self._hold = self.bound + 1, LONGEST_HOLD
        self._highest_answered = self._held = self._late = 0
        return True

    def refused(self, level: int) -> bool:
        """A request sent as number `level` was refused.

        As many were admitted since the last refusal: then it was not for the number. If as many were not, it may have
        been; if one fewer were, it was: under a limit on the rate, numbers rarely end just there.

        Returns:
            Whether it was for the number, not for the rate.
        """
        answered, self._highest_answered, self._strikes = self._highest_answered, 0, 0
        if level <= answered or level <= self._least:
            return False
        self.bound = min(self.bound, level - 1)
        self._held = 0
        if answered < level - 1:
            return False
        self._refused_at = level
        self._hold = min(max(FIRST_HOLD, HOLD_GROWTH * self._hold), LONGEST_HOLD)
        return True
