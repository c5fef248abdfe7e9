"""How fast to send: a pace that finds a hidden rate limit and stays just below it.

Nothing but a refusal shows where the limit is, so each look costs a 429, and the question is when to take the next.
The pace follows the curve of CUBIC (RFC 9438), counted in requests instead of seconds: from below the ceiling it rises
quickly, is nearly flat around it, then rises ever faster. The ceiling is measured, as in BBR (Cardwell et al. 2016):
between two refusals the server let through just what its limit allows.

One number, the doubt, scales it all: the share by which the limit may lie above or below the ceiling. The curve starts
that far below, and is that far above after twice the way to the ceiling. That way follows from the doubt d: the part
above is to exceed the ceiling by one request in all, enough to provoke one refusal, so it has 4 / d requests (the
integral of d * x ** 3 over it is d / 4 of its length). At the least doubt one request in some 170 is refused. A refusal
that comes sooner shows how little is known (a rate measured over n requests is known to 1 / n); one that is overdue
shows that the limit has risen.

No client without hints can do much better: as long as it sends nothing that would be refused if the limit had not
moved, it cannot know that the limit has risen. With one look in n requests that takes n / 2 requests on average.
"""

from __future__ import annotations

LEAST_DOUBT = 0.045
"""One request in 8 / LEAST_DOUBT is refused by a limit that does not move. With half of it a raised limit would go
unnoticed for twice as long."""
MOST_DOUBT = 0.5
"""After a refusal the pace is at least half the ceiling."""
OVERDUE = 3.0
"""Requests beyond what the ceiling allows: one provokes a refusal; after so many without one the limit has risen."""
SAVED = 1.0
"""Requests fewer than the ceiling allows that a server may let through later on top of it, as far as is assumed."""
STRIDE = 8.0
"""By this the doubt grows then: a limit twice as high is reached within some 20 requests."""
LEAD = 0.3
"""A server that saves up what was not used lets through its limit on average, one that does not refuses the first
request that comes too fast. The ceiling is put so far from the mean pace towards the last one, between the two."""
UNUSED = 2.0
"""The pace rises only while at least one in so many of the requests it allows is sent (compare RFC 7661)."""
SLOWEST = 0.1
"""Requests per second below which the pace does not fall (unless it started there), so that a provider that recovers is
noticed."""


class Pace:
    """A rate that adapts; tell it of every request sent and of every refusal that is news.

    Attributes:
        rate: requests per second, now.
    """

    def __init__(self, rate: float, top: float) -> None:
        """Start at `rate` and rise, steeply, until the first refusal or to `top`."""
        self.rate = rate
        self._top, self._slowest = top, min(rate, SLOWEST)
        self._sent, self._seconds, self._excess = 0, 0.0, 0.0
        self._start_curve(rate, 1.0, at_ceiling=True)

    def sent(self, gap_s: float, *, paced: bool) -> None:
        """A request was sent.

        Args:
            gap_s: how long it was first in the queue.
            paced: whether it was the pace that it waited for in the end.
        """
        if self._excess > OVERDUE:
            self._start_curve(self.rate, min(1.0, STRIDE * self._doubt), at_ceiling=True)
        due_s = 1.0 / self.rate
        gap_s = max(gap_s, due_s)
        self._excess = max(self._excess + 1.0 - gap_s * self._ceiling, -SAVED)
        self._sent += 1
        self._seconds += gap_s
        self._curve_sent += 1
        self._curve_due_s += due_s
        self._curve_seconds += gap_s
        if paced and self.rate < self._top and self._curve_seconds <= UNUSED * self._curve_due_s:
            self._step += 1.0
            self._follow_curve()

    def refused(self) -> None:
        """A request was refused for the rate: measure the limit, and start again from below it.

        Since the last refusal the server let through `low` requests a second, time lost to other waits included; it
        allows no less. On the present curve, which began later if the one before was overdue, it let through `high`,
        perhaps out of savings. One request at the old ceiling is added to both (it takes the place of the refused one),
        because two refusals in a row measure hardly anything.
        """
        prior_s = 1.0 / self._ceiling
        low = self._sent / (self._seconds + prior_s)
        high = self._curve_sent / (self._curve_due_s + prior_s)
        ahead = LEAD * (self.rate - self._curve_sent / self._curve_due_s)
        ceiling = max((low + high) / 2.0 + ahead, self._slowest)
        doubt = max(LEAST_DOUBT, 1.0 / self._curve_sent, (high - low) / (high + low))
        self._sent, self._seconds = 0, 0.0
        self._start_curve(ceiling, min(doubt, MOST_DOUBT), at_ceiling=False)

    def _start_curve(self, ceiling: float, doubt: float, *, at_ceiling: bool) -> None:
        self._ceiling, self._doubt = ceiling, doubt
        self._way = 4.0 / doubt
        self._step = self._way if at_ceiling else 0.0
        self._curve_sent, self._curve_due_s, self._curve_seconds = 0, 0.0, 0.0
        self._excess = 0.0
        self._follow_curve()

    def _follow_curve(self) -> None:
        rate = self._ceiling * (1.0 + self._doubt * (self._step / self._way - 1.0) ** 3)
        self.rate = min(max(rate, self._slowest), self._top)
