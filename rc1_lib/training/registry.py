"""Create the configured engines and strategies. Their modules are imported only when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from rc1_lib.config.engines import ENGINES, STRATEGIES, LearnsFrom, Spec, names_of, own_name
from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine, Strategy

if TYPE_CHECKING:
    from rc1_lib.training.episode_judge import EpisodeJudge


def make_engine(name: str, say: Callable[[str], None] | None = None) -> Engine:
    """Create the engine called `name`. It is not set up yet.

    Args:
        say: called if `name` is an alias.

    Raises:
        ConfigError: if the name is not registered.
    """
    own = own_name(name)
    spec = _registered(ENGINES, "engine", own)
    if own != name and say is not None:
        say(f"engine {name}: TRL no longer has PPO, so RC1's own is used: {own}")
    return cast(Engine, _imported(spec.place)())


def make_strategy(name: str, judge: EpisodeJudge | None = None, *, group_size: int = 1) -> Strategy:
    """Create the strategy called `name`.

    Args:
        judge: scores episodes, if the judge has weight in the reward.
        group_size: rollouts per prompt, for strategies with groups.

    Raises:
        ConfigError: if the name is not registered.
    """
    spec = _registered(STRATEGIES, "strategy", name)
    made = _imported(spec.place)
    if spec.learns_from is LearnsFrom.GROUPS:
        return cast(Strategy, made(judge, group_size))
    return cast(Strategy, made(judge) if spec.learns_from is LearnsFrom.EPISODES else made())


def _registered(registry: Mapping[str, Spec], section: str, name: str) -> Spec:
    if name not in registry:
        raise ConfigError(f"{section}.name: found '{name}', expected one of {', '.join(names_of(registry))}")
    return registry[name]


def _imported(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), name))
