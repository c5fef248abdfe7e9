"""What providers charge for their models: the shipped list with its dates, unless the configuration says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rc1_lib.config.judge import Judge as JudgeConfig
from rc1_lib.config.judge import Prices
from rc1_lib.config.strict_yaml import parse_yaml
from rc1_lib.judge.client import endpoint
from rc1_lib.judge.providers import LIVE

_FILE = Path(__file__).with_name("prices.yaml")


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
        for provider, models in parse_yaml(_FILE.read_text(encoding="utf-8")).items()
        for model, one in models.items()
    )


def prices_of(config: JudgeConfig) -> tuple[Prices, str]:
    """The prices of the configured judge, and where they come from or why they are unknown, in words.

    `judge.prices` counts. Without it the list price does, but only at the provider's own address: any other server has
    its own prices.
    """
    if config.provider not in LIVE:
        return Prices(input=0.0, output=0.0), "it bills nobody"
    listed = next((one for one in price_list() if (one.provider, one.model) == (config.provider, config.model)), None)
    if config.prices.known:
        differs = listed is not None and config.base_url is None and listed.prices != config.prices
        return config.prices, "judge.prices" + (f", while the {_words(listed)}" if listed and differs else "")
    if listed is not None and config.base_url is None:
        return listed.prices, _words(listed)
    return config.prices, f"no price is known of {endpoint(config)}; set judge.prices={{input: ..., output: ...}}"


def _words(listed: ListPrice) -> str:
    return f"list price of {listed.as_of} is {listed.prices.input:g} in, {listed.prices.output:g} out"
