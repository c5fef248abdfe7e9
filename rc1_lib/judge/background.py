"""Refusals that do not answer to the pace: a provider that turns away a share of calls whatever one does.

A limit refuses what exceeds it and nothing else. So a refusal of a request that no known limit explains (sent more
slowly than the provider had taken requests before, and as one of no more under way than it had admitted) is in vain:
sending still less would not have spared it. One or two such refusals are a limit that fell. Enough of them, one soon
after the other, are a *background*, and from then on a refusal counts as a limit's only where refusals come faster than
the background alone makes likely (a sequential test: Page 1954).

The background is measured only where no limit can add to it, so that a limit cannot be taken for one little by little.
"""

from __future__ import annotations

import math

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
    """The share of requests that is refused whatever the pace; tell it how requests ended that are news.

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
