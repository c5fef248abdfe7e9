"""The judge's prices and budget: a call starts only if the most that it can cost still fits into the budget."""

from __future__ import annotations

import threading

from rc1_lib.config.judge import Budget, Prices
from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.judge.calls import Ask
from rc1_lib.judge.providers import LIVE, endpoint

FEWEST_BYTES_A_TOKEN = 2
"""Current tokenizers average more bytes per token than this, so the token estimate is never too low."""
LONGEST_REPLY = 131_072
"""Tokens of the longest reply that any provider sells: the upper bound for calls without
`judge.sampling.max_tokens`."""


NO_LIMIT = Budget(max_usd=None, max_calls=None)


def bytes_read(ask: Ask) -> int:
    """Return the bytes of text that the model reads in a call."""
    return len((ask.system + ask.user).encode())


class Spending:
    """Tracks what one run, or several scorings that share a budget, have spent. Thread-safe.

    Attributes:
        usd: cost so far in USD: the known cost, plus the most that attempts of unknown cost (a timeout) can have cost.
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
        """Return the cost in USD at the configured prices; None without prices."""
        return self.prices.usd(tokens_in, tokens_out)

    def most(self, ask: Ask) -> float:
        """Return the most that a call can cost, in USD; 0 without prices, so that a budget in USD has no effect."""
        read = bytes_read(ask) // FEWEST_BYTES_A_TOKEN
        return self.cost(read, ask.sampling.max_tokens or LONGEST_REPLY) or 0.0

    def spent(self, ask: Ask) -> str:
        """Return why the budget does not allow this call, in words; empty if it does."""
        if self.budget.max_calls is not None and self.calls >= self.budget.max_calls:
            return f"judge.budget.max_calls ({self.budget.max_calls}) is used up"
        if self.budget.max_usd is not None and self.usd + self.most(ask) > self.budget.max_usd:
            return (
                f"judge.budget.max_usd ({self.budget.max_usd:g}) would be exceeded: ${self.usd:.4f} is spent, and the "
                f"next call can cost ${self.most(ask):.4f}"
            )
        return ""

    def _crowded(self, ask: Ask) -> bool:
        most = self.budget.max_usd
        return most is not None and self._under_way > 0 and self.usd + self._reserved + self.most(ask) > most

    def reserve(self, ask: Ask) -> float | None:
        """Count a call as sent and set aside what it can cost, in USD; pass the amount to `settle` or `give_back`.

        Returns:
            None, with nothing counted, if the call does not fit, or fits only once calls in flight have ended.
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
        """Whether a call may fit into the budget once calls in flight turn out cheaper than the most they can cost."""
        with self._lock:
            return self._crowded(ask)

    def give_back(self, reserved: float) -> None:
        """Undo `reserve`: the call was not sent after all."""
        with self._lock:
            self.calls -= 1
            self._under_way -= 1
            self._reserved -= reserved

    def settle(self, reserved: float, cost: float | None) -> None:
        """Book what the call cost, in USD; None means unknown and counts as the whole amount set aside."""
        with self._lock:
            self._under_way -= 1
            self._reserved -= reserved
            self.usd += reserved if cost is None else cost


def whole_budget(config: JudgeConfig) -> Spending:
    """Return the unspent budget of a run; a judge that bills nobody has no limit."""
    return Spending(config.budget if config.provider in LIVE else NO_LIMIT, config.prices)


def prices_of(config: JudgeConfig) -> tuple[Prices, str]:
    """Return the configured judge's prices, and where they come from or why they are unknown, in words."""
    if config.provider not in LIVE:
        return Prices(input=0.0, output=0.0), "it is free"
    if config.prices.known:
        return config.prices, "judge.prices"
    return config.prices, f"no price is known for {endpoint(config)}; set judge.prices={{input: ..., output: ...}}"


def known_usd(config: JudgeConfig, usd: float, calls: int) -> float | None:
    """Return `usd` if it is the real cost of the calls; None if a billing judge was called without known prices."""
    return usd if config.prices.known or config.provider not in LIVE or not calls else None


def check_evaluation_calls(config: RunConfig, seeds: int) -> None:
    """Reject a budget that cannot be enough for the evaluation of a training.

    Args:
        seeds: number of runs that are evaluated together.

    Raises:
        ConfigError: names the key, what is needed, and what to do.
    """
    judge, held_out = config.judge, config.training.held_out
    if judge.provider not in LIVE or not held_out.judged or not config.pays_judged_score:
        return
    most, needed = judge.budget.max_calls, held_out.judged_episodes(seeds) * judge.samples
    if most is not None and most < needed:
        raise ConfigError(
            f"judge.budget.max_calls is {most:,}, but the evaluation of {seeds} of `seeds` may need {needed:,} calls "
            f"(judge.samples for each judged episode, without retries); raise it, or lower training.held_out.judged"
        )
