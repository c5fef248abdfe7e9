"""Engines and strategies by the names that the configuration calls them. Nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine, Strategy

Made = TypeVar("Made")


def _lazy(module: str, name: str) -> Callable[..., Any]:
    """A factory that imports `rc1_lib.training.<module>` when it is called."""
    return lambda **parts: getattr(import_module(f"rc1_lib.training.{module}"), name)(**parts)


ENGINES: dict[str, Callable[..., Engine]] = {
    "torch_ppo": _lazy("engines.torch_ppo", "TorchPPO"),
    "trl_sft": _lazy("engines.trl_sft", "TrlSFT"),
}
STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "ppo": _lazy("strategies.ppo", "PPO"),
    "sft": _lazy("strategies.sft", "SFT"),
}
ALIASES = {"trl_ppo": "torch_ppo"}
"""Names from before TRL gave up PPO; each is told with a notice."""


def resolve_engine(name: str, say: Callable[[str], None]) -> str:
    """The engine's own name, with a notice through `say` when `name` is an alias."""
    if name not in ALIASES:
        return name
    say(f"engine {name}: TRL has no PPO any more, so RC1's own takes its place: {ALIASES[name]}")
    return ALIASES[name]


def make_engine(name: str, say: Callable[[str], None]) -> Engine:
    """The engine called `name`.

    Raises:
        ConfigError: for a name that is not registered, saying which are.
    """
    return _factory(ENGINES, "engine", resolve_engine(name, say))()


def make_strategy(name: str, **parts: object) -> Strategy:
    """The strategy called `name`, made of these parts.

    Raises:
        ConfigError: for a name that is not registered, saying which are.
    """
    return _factory(STRATEGIES, "strategy", name)(**parts)


def _factory(known: Mapping[str, Callable[..., Made]], section: str, name: str) -> Callable[..., Made]:
    if name not in known:
        names = sorted({*known, *(ALIASES if section == "engine" else ())})
        raise ConfigError(f"{section}.name: found '{name}', expected one of {', '.join(names)}")
    return known[name]
