"""How fast to send and how many at once: what finds hidden limits, stays just below them, and spares chance.

Nothing but a refusal shows where a limit is, so each look costs a 429, and the question is when to take the next. And a
provider may turn away a share of calls whatever one does: sending less would not have spared those.
"""

from __future__ import annotations

import math

LEAST_DOUBT = 0.036
"""One request in 8 / LEAST_DOUBT is refused by a limit that does not move. With half of it a raised limit would go
unnoticed for twice as long."""
MOST_DOUBT = 0.5
"""After a refusal the pace is at least half the ceiling."""
OVERDUE = 3.0
"""Requests beyond what the ceiling allows: one provokes a refusal; after so many without one the limit has risen."""
OVERDUE_AT_RANDOM = 12.0
"""`OVERDUE` where a share is refused whatever the pace: more refusals have to come together to stand out from those."""
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
SETTLED = 50
"""Requests at the highest pace without a limit's refusal, after which no limit on the rate is reckoned with."""
CUT = 0.6
"""While nobody can say whether a refusal was for the rate, the ceiling falls to no less than this share of itself."""
LOW_DOUBT = 0.25
"""The doubt is at least this then, if the ceiling is below the pace to start with: slow paces take long to learn."""


class Pace:
    """Requests per second; it has to know of every request sent and of every refusal that is news.

    The pace follows the curve of CUBIC (RFC 9438), counted in requests instead of seconds: from below the ceiling it
    rises quickly, is nearly flat around it, then rises ever faster. The ceiling is measured, as in BBR (Cardwell et al.
    2016): between two refusals the server let through just what its limit allows.

    One number, the doubt, scales it all: the share by which the limit may lie above or below the ceiling. The curve
    starts that far below, and is that far above after twice the way to the ceiling. That way follows from the doubt d:
    the part above is to exceed the ceiling by one request in all, enough to provoke one refusal, so it has 4 / d
    requests (the integral of d * x ** 3 over it is d / 4 of its length). At the least doubt one request in some 220 is
    refused. A refusal that comes sooner shows how little is known (a rate measured over n requests is known to 1 / n);
    one that is overdue shows that the limit has risen.

    No client without hints can do much better: as long as it sends nothing that would be refused if the limit had not
    moved, it cannot know that the limit has risen. With one look in n requests that takes n / 2 requests on average.

    Attributes:
        rate: requests per second, now.
        background: the share of requests that is refused whatever the pace.
    """

    def __init__(self, rate: float, top: float) -> None:
        """Start at `rate` and rise, steeply, until the first refusal or to `top`."""
        self.rate, self.background = rate, 0.0
        self._top, self._slowest, self._start = top, min(rate, SLOWEST), rate
        self._overdue = OVERDUE
        self._sent, self._lost, self._seconds, self._excess = 0, 0, 0.0, 0.0
        self._curve_sent, self._curve_lost, self._curve_due_s, self._curve_seconds = 0, 0, 0.0, 0.0
        self._start_curve(rate, 1.0, at_ceiling=True)
        self._way = self._step = FIRST_WAY

    def sent(self, gap_s: float, *, paced: bool) -> None:
        """A request was sent.

        Args:
            gap_s: how long it was first in the queue.
            paced: whether it was the pace that it waited for in the end.
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
        """Whether the next request is slower than what was let through, so that no limit on the rate explains a 429."""
        if self.rate >= self._top and self._ceiling >= self._top:
            return self._curve_sent >= SETTLED
        return self._excess <= 0.0 and self.rate <= (1.0 - self.background) * self._calmest

    def refused_at_random(self) -> None:
        """A request was refused, and as far as is known not for the rate."""
        self._lost += 1
        self._excess = max(self._excess - 1.0 / (1.0 - self.background), -SAVED)
        self._curve_lost += 1

    def lowered_in_vain(self) -> None:
        """The refusals of late were not for the rate: find out again how fast one may send."""
        self._start_measuring(self.rate, 1.0, at_ceiling=True)

    def refused(self, *, in_doubt: bool = False) -> None:
        """A request was refused for the rate: measure the limit, and start again from below it.

        Since the last refusal the server let through `low` requests a second, time lost to other waits included; it
        allows no less. On the present curve, which began later if the one before was overdue, it let through `high`,
        perhaps out of savings. One request at the old ceiling is added to both (it takes the place of the refused one),
        because two refusals in a row measure hardly anything.

        Args:
            in_doubt: whether this refusal and those shortly before may have been at random.
        """
        prior_s = 1.0 / self._ceiling
        let_in = 1.0 - self.background
        low = max(1, self._sent - self._lost) / let_in / (self._seconds + prior_s)
        high = max(1, self._curve_sent - self._curve_lost) / let_in / (self._curve_due_s + prior_s)
        # With a background many requests together show that the limit was exceeded, not the last one.
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
"""Fewer requests in a row without a reply in time may be chance, however few are under way."""
CHANCE = 0.01
"""So unlikely has it to be that numbers refused in a row were refused at random."""


class ConcurrencyBound:
    """A bound on requests under way; it has to know of each answer and refusal, and how many were under way.

    It falls below a number that was refused and rises by one, as in Chiu and Jain (1989), but with a memory: the
    refused number is tried again after 32 requests and then after every 128, so that under a limit that does not move
    one request in 128 is refused. Only news counts: answers and refusals of requests that were sent after the last
    refusal was known.

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


ENOUGH = 3.6
"""Refusals in vain, faded, that make a background. A limit that falls to half makes two or three."""
FEW = 1.0
"""With fewer, faded, there is none any more."""
SUSPICIOUS = 0.5
"""From so many on, faded, there may be one."""
MEMORY = 200.0
"""Requests in which what was counted fades to 1 / e."""
MOST = 0.3
"""No greater share is taken for a background: who refuses that much is to be spared, whatever the reason."""
SURPRISE = 2.0
"""Refusals in vain beyond that share that may still be chance."""
EXCESS = 0.2
"""What a limit is looked for by: so many refused on top of the background, as a share of the requests."""
PROOF = 5.0
"""Logarithm of how much likelier refusals have to be with that excess than without, to be a limit's."""


class Background:
    """The share of requests that is refused whatever the pace; it has to know how requests ended that are news.

    A limit refuses what exceeds it and nothing else. So a refusal of a request that no known limit explains (sent more
    slowly than the provider had taken requests before, and as one of no more under way than it had admitted) is in
    vain: sending still less would not have spared it. One or two such refusals are a limit that fell. Enough of them,
    one soon after the other, are a *background*, and from then on a refusal counts as a limit's only where refusals
    come faster than the background alone makes likely (a sequential test: Page 1954). The background is measured only
    where no limit can add to it, so that a limit cannot be taken for one little by little.

    Attributes:
        share: from 0, where every refusal is a limit's, to `MOST`.
    """

    def __init__(self) -> None:
        """Start without a background."""
        self.share = 0.0
        self._calm = self._in_vain = 0.0
        self._evidence = 0.0

    def answered(self, *, calm: bool) -> None:
        """A request was admitted.

        Args:
            calm: whether no limit that is known could have refused it.
        """
        self._count(calm, 0.0)
        if self.share:
            likelier = (1.0 - self.share - EXCESS) / (1.0 - self.share)
            self._evidence = max(0.0, self._evidence + math.log(likelier))

    def refused(self, *, calm: bool) -> bool:
        """A request was refused.

        Args:
            calm: whether no limit that is known can have refused it.

        Returns:
            Whether it is a limit's doing.
        """
        self._count(calm, 1.0)
        if not self.share:
            return True
        self._evidence += math.log((self.share + EXCESS) / self.share)
        return self._evidence >= PROOF

    def acted(self) -> None:
        """Pace or bound were lowered: what was refused before says nothing about them as they are now."""
        self._evidence = 0.0

    @property
    def is_suspected(self) -> bool:
        """Whether there may be a background, though nothing is proven yet."""
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
