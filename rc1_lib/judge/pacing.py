"""How fast to send: a pace that finds a hidden rate limit and stays just below it.

Nothing but a refusal shows where the limit is, so each look costs a 429, and the question is when to take the next.
The pace follows the curve of CUBIC (RFC 9438), counted in requests instead of seconds: from below the ceiling it rises
quickly, is nearly flat around it, then rises ever faster. The ceiling is measured, as in BBR (Cardwell et al. 2016):
between two refusals the server let through just what its limit allows.

One number, the doubt, scales it all: the share by which the limit may lie above or below the ceiling. The curve starts
that far below, and is that far above after twice the way to the ceiling. That way follows from the doubt d: the part
above is to exceed the ceiling by one request in all, enough to provoke one refusal, so it has 4 / d requests (the
integral of d * x ** 3 over it is d / 4 of its length). At the least doubt one request in some 220 is refused. A refusal
that comes sooner shows how little is known (a rate measured over n requests is known to 1 / n); one that is overdue
shows that the limit has risen.

No client without hints can do much better: as long as it sends nothing that would be refused if the limit had not
moved, it cannot know that the limit has risen. With one look in n requests that takes n / 2 requests on average.
"""

from __future__ import annotations

LEAST_DOUBT = 0.036
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
FIRST_WAY = 2.0
"""Requests in which the first pace, of which nothing is known, is doubled."""
OVERDUE_AT_RANDOM = 12.0
"""`OVERDUE` where a share is refused whatever the pace: more refusals have to come together to stand out from those."""
SETTLED = 50
"""Requests at the highest pace without a limit's refusal, after which no limit on the rate is reckoned with."""
CUT = 0.6
"""While nobody can say whether a refusal was for the rate, the ceiling falls to no less than this share of itself."""
LOW_DOUBT = 0.25
"""The doubt is at least this then, if the ceiling is below the pace to start with: slow paces take long to learn."""


class Pace:
    """A rate that adapts; tell it of every request sent and of every refusal that is news.

    Attributes:
        rate: requests per second, now.
    """

    def __init__(self, rate: float, top: float) -> None:
        """Start at `rate` and rise, steeply, until the first refusal or to `top`."""
        self.rate = rate
        self._top, self._slowest = top, min(rate, SLOWEST)
        self._start = rate
        self._overdue = OVERDUE
        self._sent, self._lost, self._seconds, self._excess = 0, 0, 0.0, 0.0
        self._curve_sent, self._curve_lost, self._curve_due_s, self._curve_seconds = 0, 0, 0.0, 0.0
        self._start_curve(rate, 1.0, at_ceiling=True)
        self._way = self._step = FIRST_WAY

    def sent(self, gap_s: float, *, paced: bool, background: float = 0.0) -> None:
        """A request was sent.

        Args:
            gap_s: how long it was first in the queue.
            paced: whether it was the pace that it waited for in the end.
            background: the share of requests that is refused whatever the pace.
        """
        if self._excess > self._overdue:
            self._start_curve(self.rate, min(1.0, STRIDE * self._doubt), at_ceiling=True)
        due_s = 1.0 / self.rate
        gap_s = max(gap_s, due_s)
        self._excess = max(self._excess + 1.0 / (1.0 - background) - gap_s * self._ceiling, -SAVED)
        self._sent += 1
        self._seconds += gap_s
        self._curve_sent += 1
        self._curve_due_s += due_s
        self._curve_seconds += gap_s
        if paced and self.rate < self._top and self._curve_seconds <= UNUSED * self._curve_due_s:
            self._step += 1.0
            self._follow_curve()

    def is_calm(self, background: float) -> bool:
        """Whether the next request is slower than what was let through, so that no limit on the rate explains a 429.

        Args:
            background: the share of requests that is refused whatever the pace.
        """
        if self.rate >= self._top and self._ceiling >= self._top:
            return self._curve_sent >= SETTLED
        return self._excess <= 0.0 and self.rate <= (1.0 - background) * self._calmest

    def refused_at_random(self, background: float) -> None:
        """A request was refused, and as far as is known not for the rate."""
        self._lost += 1
        self._excess = max(self._excess - 1.0 / (1.0 - background), -SAVED)
        self._curve_lost += 1

    def lowered_in_vain(self) -> None:
        """The refusals of late were not for the rate: find out again how fast one may send."""
        self._sent, self._seconds, self._lost = 0, 0.0, 0
        self._start_curve(self.rate, 1.0, at_ceiling=True)

    def refused(self, background: float = 0.0, *, in_doubt: bool = False) -> None:
        """A request was refused for the rate: measure the limit, and start again from below it.

        Since the last refusal the server let through `low` requests a second, time lost to other waits included; it
        allows no less. On the present curve, which began later if the one before was overdue, it let through `high`,
        perhaps out of savings. One request at the old ceiling is added to both (it takes the place of the refused one),
        because two refusals in a row measure hardly anything.

        Args:
            background: the share of requests that is refused whatever the pace. What is left over was let through, and
                its share of what was sent is known.
            in_doubt: whether this refusal and those shortly before may have been of that kind.
        """
        prior_s = 1.0 / self._ceiling
        let_in = 1.0 - background
        low = max(1, self._sent - self._lost) / let_in / (self._seconds + prior_s)
        high = max(1, self._curve_sent - self._curve_lost) / let_in / (self._curve_due_s + prior_s)
        # With a background many requests tell together that the limit was exceeded, not the last one.
        ahead = 0.0 if background else LEAD * (self.rate - self._curve_sent / self._curve_due_s)
        doubt = max(LEAST_DOUBT + background, 1.0 / self._curve_sent, (high - low) / (high + low))
        if in_doubt and self._ceiling < self._start:
            doubt = max(doubt, LOW_DOUBT)
        self._overdue = OVERDUE_AT_RANDOM if background else OVERDUE
        measured = max((low + high) / 2.0 + ahead, self._slowest)
        ceiling = max(measured, CUT * self._ceiling) if in_doubt else measured
        self._sent, self._seconds, self._lost = 0, 0.0, 0
        self._start_curve(ceiling, min(doubt, MOST_DOUBT), at_ceiling=False)
        self._calmest = measured

    def _start_curve(self, ceiling: float, doubt: float, *, at_ceiling: bool) -> None:
        self._ceiling, self._calmest, self._doubt = ceiling, ceiling, doubt
        self._way = 4.0 / doubt
        self._step = self._way if at_ceiling else 0.0
        self._curve_lost = 0
        self._curve_sent, self._curve_due_s, self._curve_seconds = 0, 0.0, 0.0
        self._excess = 0.0
        self._follow_curve()

    def _follow_curve(self) -> None:
        rate = self._ceiling * (1.0 + self._doubt * (self._step / self._way - 1.0) ** 3)
        self.rate = min(max(rate, self._slowest), self._top)
