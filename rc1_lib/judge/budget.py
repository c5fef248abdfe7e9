"""What a run of the judge may spend. A call starts only when the most that it can cost still fits."""

from __future__ import annotations

import threading

from rc1_lib.config.judge import Budget, Prices
from rc1_lib.judge.calls import Ask

FEWEST_BYTES_A_TOKEN = 2
"""Fewer bytes than any current tokenizer makes of a token on average, so that an estimate is never too low."""
LONGEST_REPLY = 131_072
"""Tokens of the longest reply that is sold: what a call without `judge.sampling.max_tokens` may cost."""


def bytes_read(ask: Ask) -> int:
    """Bytes of the text that a call has the model read."""
    return len((ask.system + ask.user).encode())


class Spending:
    """Keeps the sums of one run, or of several scorings that share a budget, in whichever threads.

    Attributes:
        usd: known cost so far, and the most that attempts of unknown outcome (a timeout) can have cost.
        calls: calls sent so far.
    """

    def __init__(self, budget: Budget, prices: Prices) -> None:
        self.budget, self.prices = budget, prices
        self.usd = 0.0
        self.calls = 0
        self._reserved = 0.0
        self._under_way = 0
        self._lock = threading.Lock()

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """USD at the configured prices; None where there are none."""
        return self.prices.usd(tokens_in, tokens_out)

    def most(self, ask: Ask) -> float:
        """The most that a call can cost, in USD; 0 without prices, so that no budget in USD holds then."""
        read = bytes_read(ask) // FEWEST_BYTES_A_TOKEN
        return self.cost(read, ask.sampling.max_tokens or LONGEST_REPLY) or 0.0

    def spent(self, ask: Ask) -> str:
        """Why this call may not be sent, in words; empty when it may."""
        if self.budget.max_calls is not None and self.calls >= self.budget.max_calls:
            return f"judge.budget.max_calls ({self.budget.max_calls}) is used up"
        if self.budget.max_usd is not None and self.usd + self.most(ask) > self.budget.max_usd:
            return (
                f"judge.budget.max_usd ({self.budget.max_usd:g}) would be passed: ${self.usd:.4f} is spent, and the "
                f"next call can cost ${self.most(ask):.4f}"
            )
        return ""

    def _crowded(self, ask: Ask) -> bool:
        most = self.budget.max_usd
        return most is not None and self._under_way > 0 and self.usd + self._reserved + self.most(ask) > most

    def reserve(self, ask: Ask) -> float | None:
        """Count a call as sent, and set aside what it can cost; give the amount to `settle` or `give_back`.

        Returns:
            None, and nothing is counted, when it does not fit, or not before calls under way have ended.
        """
        with self._lock:
            if self._crowded(ask) or self.spent(ask):
                return None
            amount = self.most(ask)
            self.calls += 1
            self._under_way += 1
            self._reserved += amount
            return amount

    def has_to_wait(self, ask: Ask) -> bool:
        """Whether a call fits into the budget only once others have ended and cost less than they could."""
        with self._lock:
            return self._crowded(ask)

    def give_back(self, reserved: float) -> None:
        """The call was not sent after all."""
        with self._lock:
            self.calls -= 1
            self._under_way -= 1
            self._reserved -= reserved

    def settle(self, reserved: float, cost: float | None) -> None:
        """Book what the call cost; None where nobody knows, which counts as the whole amount set aside."""
        with self._lock:
            self._under_way -= 1
            self._reserved -= reserved
            self.usd += reserved if cost is None else cost
