"""Find a provider's hidden limits on rate and concurrency, stay just below them, and ignore random refusals.

Only a refusal shows where a limit is, so each probe costs a 429; the question is when to send the next one. A provider
may also refuse a share of calls at random: sending less would not avoid those.
"""

from __future__ import annotations

import math

LEAST_DOUBT = 0.036
"""A limit that does not move refuses one request in 8 / LEAST_DOUBT. Half of this value would notice a raised limit
twice as late."""
MOST_DOUBT = 0.5
"""After a refusal the pace falls to no less than half the ceiling."""
OVERDUE = 3.0
"""Requests sent beyond what the ceiling allows. One such request should provoke a refusal; if this many do not, the
limit has risen."""
OVERDUE_AT_RANDOM = 12.0
"""`OVERDUE` when a share is refused at any pace: a limit's refusals have to stand out from the random ones."""
SAVED = 1.0
"""Requests below the ceiling that a server is assumed to let through later, on top of its limit."""
STRIDE = 8.0
"""Factor by which the doubt grows once a refusal is overdue: a limit twice as high is reached within some 20
requests."""
LEAD = 0.3
"""A server that saves up unused requests lets through its limit on average. A server that does not refuses the first
request that comes too fast. So the ceiling is set between the mean pace and the last pace, this far towards the
last."""
UNUSED = 2.0
"""The pace rises only while at least one in this many of the requests it allows is sent (compare RFC 7661)."""
SLOWEST = 0.1
"""The pace does not fall below this many requests per second (unless it started lower), so that it notices when a
provider recovers."""
FIRST_WAY = 2.0
"""Requests in which the initial pace, about which nothing is known, doubles."""
SETTLED = 50
"""After this many requests at the highest pace without a limit's refusal, assume that there is no rate limit."""
CUT = 0.6
"""As long as it is unclear whether a refusal was for the rate, the ceiling falls to no less than this share of
itself."""
LOW_DOUBT = 0.25
"""The doubt is then at least this, if the ceiling is below the initial pace: slow paces take long to learn."""


class Pace:
    """Adapts the requests per second. Report every request sent, and every refusal that brings news.

    The pace follows the curve of CUBIC (RFC 9438), counted in requests instead of seconds: from below the ceiling it
    rises quickly, is nearly flat around it, then rises ever faster. The ceiling is measured, as in BBR (Cardwell et al.
    2016): between two refusals the server let through just what its limit allows.

    One number scales the curve: the doubt, the share by which the limit may lie above or below the ceiling. The curve
    starts that far below the ceiling, reaches it after `way` requests, and is that far above it after twice as many.
    The way follows from the doubt d. The part above should exceed the ceiling by one request in all, enough to provoke
    one refusal, so it has 4 / d requests (the integral of d * x ** 3 over it is d / 4 of its length). At the least
    doubt one request in some 220 is refused. A refusal that comes sooner shows how little is known (a rate measured
    over n requests is known to 1 / n). A refusal that is overdue shows that the limit has risen.

    No client without hints can do much better: it learns that the limit has risen only by sending a request that the
    old limit would have refused. With one such probe in n requests that takes n / 2 requests on average.

    Attributes:
        rate: current requests per second.
        background: the share of requests that is refused at any pace.
    """

    def __init__(self, rate: float, top: float) -> None:
        """Start at `rate` and rise steeply until the first refusal or `top`, in requests per second."""
        self.rate, self.background = rate, 0.0
        self._top, self._slowest, self._start = top, min(rate, SLOWEST), rate
        self._overdue = OVERDUE
        self._sent, self._lost, self._seconds, self._excess = 0, 0, 0.0, 0.0
        self._curve_sent, self._curve_lost, self._curve_due_s, self._curve_seconds = 0, 0, 0.0, 0.0
        self._start_curve(rate, 1.0, at_ceiling=True)
        self._way = self._step = FIRST_WAY

    def sent(self, gap_s: float, *, paced: bool) -> None:
        """Record that a request was sent.

        Args:
            gap_s: seconds it spent first in the queue.
            paced: whether the last thing it waited for was the pace.
        """
        if self._excess > self._overdue:
            self._start_curve(self.rate, min(1.0, STRIDE * self._doubt), at_ceiling=True)
        due_s = 1.0 / self.rate
        gap_s = max(gap_s, due_s)
        self._excess = max(self._excess + 1.0 / (1.0 - self.background) - gap_s * self._ceiling, -SAVED)
        self._sent += 1
        self._seconds += gap_s
        self._curve_sent += 1
        self._curve_due_s += due_s
        self._curve_seconds += gap_s
        if paced and self.rate < self._top and self._curve_seconds <= UNUSED * self._curve_due_s:
            self._step += 1.0
            self._follow_curve()

    @property
    def is_calm(self) -> bool:
        """Whether the next request is slower than what the server accepted, so that no rate limit explains a 429."""
        if self.rate >= self._top and self._ceiling >= self._top:
            return self._curve_sent >= SETTLED
        return self._excess <= 0.0 and self.rate <= (1.0 - self.background) * self._calmest

    def refused_at_random(self) -> None:
        """Record that a request was refused, probably not because of the rate."""
        self._lost += 1
        self._excess = max(self._excess - 1.0 / (1.0 - self.background), -SAVED)
        self._curve_lost += 1

    def measure_again(self) -> None:
        """Measure the limit from scratch: the recent refusals were not because of the rate."""
        self._start_measuring(self.rate, 1.0, at_ceiling=True)

    def refused(self, *, in_doubt: bool = False) -> None:
        """Record that a request was refused because of the rate: measure the limit and restart the curve below it.

        Since the last refusal the server let through `low` requests a second, including time lost to other waits; it
        allows no less. On the present curve, which began later if the last refusal was overdue, it let through `high`,
        perhaps from savings. One request at the old ceiling is added to both (it replaces the refused one), because two
        refusals in a row measure hardly anything.

        Args:
            in_doubt: whether this refusal and those shortly before it may have been random.
        """
        prior_s = 1.0 / self._ceiling
        let_in = 1.0 - self.background
        low = max(1, self._sent - self._lost) / let_in / (self._seconds + prior_s)
        high = max(1, self._curve_sent - self._curve_lost) / let_in / (self._curve_due_s + prior_s)
        # With a background, many requests together show that the limit was exceeded; the last one alone does not.
        ahead = 0.0 if self.background else LEAD * (self.rate - self._curve_sent / self._curve_due_s)
        doubt = max(LEAST_DOUBT + self.background, 1.0 / self._curve_sent, (high - low) / (high + low))
        if in_doubt and self._ceiling < self._start:
            doubt = max(doubt, LOW_DOUBT)
        self._overdue = OVERDUE_AT_RANDOM if self.background else OVERDUE
        measured = max((low + high) / 2.0 + ahead, self._slowest)
        ceiling = max(measured, CUT * self._ceiling) if in_doubt else measured
        self._start_measuring(ceiling, min(doubt, MOST_DOUBT), at_ceiling=False)
        self._calmest = measured

    def _start_measuring(self, ceiling: float, doubt: float, *, at_ceiling: bool) -> None:
        self._sent, self._lost, self._seconds = 0, 0, 0.0
        self._start_curve(ceiling, doubt, at_ceiling=at_ceiling)

    def _start_curve(self, ceiling: float, doubt: float, *, at_ceiling: bool) -> None:
        self._ceiling, self._calmest, self._doubt = ceiling, ceiling, doubt
        self._way = 4.0 / doubt
        self._step = self._way if at_ceiling else 0.0
        self._curve_sent, self._curve_lost, self._curve_due_s, self._curve_seconds = 0, 0, 0.0, 0.0
        self._excess = 0.0
        self._follow_curve()

    def _follow_curve(self) -> None:
        rate = self._ceiling * (1.0 + self._doubt * (self._step / self._way - 1.0) ** 3)
        self.rate = min(max(rate, self._slowest), self._top)


FIRST_HOLD = 32
HOLD_GROWTH = 4
LONGEST_HOLD = 128
LATE = 2
"""Fewer consecutive requests without a reply in time may be chance, however few are in flight."""
CHANCE = 0.01
"""Refusals of consecutive new levels are a limit's if chance explains them with less than this probability."""


class ConcurrencyBound:
    """Bounds the requests in flight. Report every answer and refusal with its level: the number in flight, inclusive.

    The bound falls below a level that was refused and rises by one, as in Chiu and Jain (1989), but with a memory: it
    tries the refused level again after 32 requests and then after every 128, so that a limit that does not move refuses
    one request in 128. Only news counts: answers and refusals of requests that were sent after the last refusal was
    known.

    Attributes:
        bound: how many requests may be in flight now.
    """

    def __init__(self, least: int, most: int) -> None:
        """Start at `most`: the pace makes the number in flight rise slowly, so the first refusal shows the limit."""
        self.bound = most
        self._least, self._most = least, most
        self._highest_answered = 0
        self._refused_at = most + 1
        self._hold, self._held = 1, 0
        self._strikes = 0
        self._late = 0

    def answered(self, level: int) -> None:
        """Record that the server admitted a request sent at `level`."""
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
        """Whether as many requests as `level` were admitted since the last refusal."""
        return level <= max(self._highest_answered, self._least)

    def is_full(self, level: int, background: float) -> bool:
        """Whether a limit, not chance, explains a refusal at `level` when a share is refused at random.

        A limit refuses every request above it; chance hardly ever refuses several new levels in a row.
        """
        if self.has_admitted(level):
            return False
        self._strikes += 1
        return background**self._strikes < CHANCE

    def late(self) -> bool:
        """Record that a request got no reply in time; the bound halves after half as many in a row as it allows.

        A server that accepts more than it works on refuses nothing: requests time out in its queue.

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
        """Record that a request sent at `level` was refused.

        If as many were admitted since the last refusal, the number in flight was not the reason. Otherwise it may have
        been, and the bound falls. If exactly one fewer was admitted, it was: a rate limit rarely stops just there.

        Returns:
            Whether the number in flight was the reason, not the rate.
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


ENOUGH = 3.6
"""Unexplained refusals (faded count) that prove a background. A limit that falls to half makes two or three."""
FEW = 1.0
"""With a lower faded count the background is over."""
SUSPICIOUS = 0.5
"""From this faded count on a background is possible."""
MEMORY = 200.0
"""Requests in which a count fades to 1 / e."""
MOST = 0.3
"""The largest share taken for a background: a provider that refuses more needs fewer requests, whatever the reason."""
SURPRISE = 2.0
"""Unexplained refusals beyond that share that may still be chance."""
EXCESS = 0.2
"""The share of requests, on top of the background, that the sequential test assumes a limit to refuse."""
PROOF = 5.0
"""Log-likelihood ratio (with that excess against without) from which refusals count as a limit's."""


class Background:
    """Estimates the share of requests that is refused at any pace. Report how every request ended that brings news.

    A limit refuses only what exceeds it. So a refusal is unexplained if the request was sent more slowly than the
    provider had accepted before, with no more in flight than it had admitted: sending still less would not have avoided
    it. One or two such refusals mean that a limit fell. Enough of them, close together, are a *background*. From then
    on a refusal counts as a limit's only if refusals come faster than the background alone makes likely (a sequential
    test: Page 1954). The background is measured only where no limit can add to it, so that a limit is not gradually
    mistaken for one.

    Attributes:
        share: from 0 (every refusal is a limit's) to `MOST`.
    """

    def __init__(self) -> None:
        """Start without a background."""
        self.share = 0.0
        self._calm = self._in_vain = 0.0
        self._evidence = 0.0

    def answered(self, *, calm: bool) -> None:
        """Record that a request was admitted.

        Args:
            calm: whether no known limit could have refused it.
        """
        self._count(calm, 0.0)
        if self.share:
            likelier = (1.0 - self.share - EXCESS) / (1.0 - self.share)
            self._evidence = max(0.0, self._evidence + math.log(likelier))

    def refused(self, *, calm: bool) -> bool:
        """Record that a request was refused.

        Args:
            calm: whether no known limit can have refused it.

        Returns:
            Whether the refusal counts as a limit's.
        """
        self._count(calm, 1.0)
        if not self.share:
            return True
        self._evidence += math.log((self.share + EXCESS) / self.share)
        return self._evidence >= PROOF

    def acted(self) -> None:
        """Reset the evidence after pace or bound changed: earlier refusals say nothing about the new values."""
        self._evidence = 0.0

    @property
    def is_suspected(self) -> bool:
        """Whether there may be a background, not proven yet."""
        return SUSPICIOUS <= self._in_vain <= MOST * self._calm + SURPRISE

    def _count(self, calm: bool, refused: float) -> None:
        if not calm:
            return
        kept = 1.0 - 1.0 / MEMORY
        self._calm = kept * self._calm + 1.0
        self._in_vain = kept * self._in_vain + refused
        seen = self._in_vain / self._calm
        if self.share:
            self.share = min(seen, MOST) if self._in_vain >= FEW else 0.0
        elif self._in_vain >= ENOUGH and seen <= MOST:
            self.share = seen
