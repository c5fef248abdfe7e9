"""What the judge costs, and what a run of it may spend: a call starts only when the most that it can cost still fits.

Prices are those of the configuration, or of the shipped list with its dates.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rc1_lib.config.judge import Budget, Prices
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.judge.calls import Ask
from rc1_lib.judge.providers import LIVE, endpoint

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


@dataclass(frozen=True, slots=True)
class ListPrice:
    """A model's list price.

    Attributes:
        provider: as in `judge.provider`.
        model: as in `judge.model`.
        prices: in USD per million tokens.
        as_of: the last day on which its page is known to have said so, YYYY-MM-DD.
        source: the page.
    """

    provider: str
    model: str
    prices: Prices
    as_of: str
    source: str


@cache
def price_list() -> tuple[ListPrice, ...]:
    """All list prices, by provider and model."""
    return tuple(
        ListPrice(provider, model, Prices(input=one["input"], output=one["output"]), one["as_of"], one["source"])
        for provider, models in parse_yaml(Path(__file__).with_name("prices.yaml").read_text(encoding="utf-8")).items()
        for model, one in models.items()
    )


def prices_of(config: JudgeConfig) -> tuple[Prices, str]:
    """The prices of the configured judge, and where they come from or why they are unknown, in words.

    `judge.prices` counts. Without it the list price does, but only at the provider's own address: any other server has
    its own prices.
    """
    if config.provider not in LIVE:
        return Prices(input=0.0, output=0.0), "it is free"
    listed = next((one for one in price_list() if (one.provider, one.model) == (config.provider, config.model)), None)
    if config.prices.known:
        differs = listed is not None and config.base_url is None and listed.prices != config.prices
        return config.prices, "judge.prices" + (f", while the {_words(listed)}" if listed and differs else "")
    if listed is not None and config.base_url is None:
        return listed.prices, _words(listed)
    return config.prices, f"no price is known of {endpoint(config)}; set judge.prices={{input: ..., output: ...}}"


def _words(listed: ListPrice) -> str:
    return f"list price of {listed.as_of} is {listed.prices.input:g} in, {listed.prices.output:g} out"


def known_usd(config: JudgeConfig, usd: float, calls: int) -> float | None:
    """What so many calls cost; None where the judge bills and nobody said at what prices."""
    return usd if config.prices.known or config.provider not in LIVE or not calls else None
