"""Makes the engines and strategies that a configuration names. Nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from rc1_lib.config.engines import ENGINES, STRATEGIES, Learner, LearnsFrom, names_of, own_name
from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine, Strategy
from rc1_lib.training.setups import EpisodeSetup, SupervisedSetup

if TYPE_CHECKING:
    from rc1_lib.training.episode_judge import EpisodeJudge

KnownSetup = TypeVar("KnownSetup", EpisodeSetup, SupervisedSetup)


def make_engine(name: str, takes: type[KnownSetup], say: Callable[[str], None] | None = None) -> Engine[KnownSetup]:
    """The engine called `name`, not set up yet.

    Args:
        name: as the configuration has it.
        takes: what it is going to be set up by.
        say: called when `name` is another name for an engine.

    Raises:
        ConfigError: for a name that is not registered, or of an engine that is set up by something else.
    """
    own = own_name(name)
    learner = _registered(ENGINES, "engine", own)
    if not any(kind in takes.learns_from for kind in learner.kinds):
        raise ConfigError(_learns_from_something_else(name, takes.learns_from))
    if own != name and say is not None:
        say(f"engine {name}: TRL has no PPO any more, so RC1's own takes its place: {own}")
    place = learner.place_for(takes.learns_from)
    made = _imported(place)()
    if made.takes is not takes:
        raise TypeError(
            f"{place}: takes {made.takes.__name__}, but is registered as learning from {learner.learns_from}, "
            f"and such an engine takes {takes.__name__}; correct its line in rc1_lib.config.engines.ENGINES"
        )
    return cast("Engine[KnownSetup]", made)


def make_strategy(name: str, judge: EpisodeJudge | None = None, *, group_size: int = 1) -> Strategy:
    """The strategy called `name`.

    Args:
        name: as the configuration has it.
        judge: who scores episodes, where that has weight in the reward.
        group_size: takes of every prompt, where it brings several.

    Raises:
        ConfigError: for a name that is not registered.
    """
    learner = _registered(STRATEGIES, "strategy", name)
    made = _imported(learner.place)
    if learner.learns_from is LearnsFrom.GROUPS:
        return cast(Strategy, made(judge, group_size))
    return cast(Strategy, made(judge) if learner.learns_from is LearnsFrom.EPISODES else made())


def check_of_rows(engine: str, strategy: str) -> None:
    """Refuse what cannot learn from rows of input and output, before anything is loaded or made up for it.

    Raises:
        ConfigError: saying what can.
    """
    if LearnsFrom.ROWS not in _registered(ENGINES, "engine", own_name(engine)).kinds:
        raise ConfigError(_learns_from_something_else(engine, (LearnsFrom.ROWS,)))
    if _registered(STRATEGIES, "strategy", strategy).learns_from is not LearnsFrom.ROWS:
        fitting = " or ".join(names_of(STRATEGIES, LearnsFrom.ROWS))
        raise ConfigError(
            f"strategy.name: found '{strategy}', but the engine {engine} plays no episodes; take {fitting}"
        )


def _registered(learners: Mapping[str, Learner], section: str, name: str) -> Learner:
    if name not in learners:
        raise ConfigError(f"{section}.name: found '{name}', expected one of {', '.join(names_of(learners))}")
    return learners[name]


def _imported(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), name))


def _learns_from_something_else(name: str, wanted: Sequence[LearnsFrom]) -> str:
    engines, strategies = (", ".join(names_of(learners, *wanted)) for learners in (ENGINES, STRATEGIES))
    if LearnsFrom.ROWS in wanted:
        return (
            f"engine.name: {name} learns from episodes in RC1's dialogue world, and rows of input and output have "
            f"none; take {engines} with strategy {strategies}, or train with configs/local.yaml"
        )
    return (
        f"training.engine: {name} learns from rows with labels, and a run learns from episodes of its own or from the "
        f"pool's dialogues; take "
        f"{engines} with strategy {strategies}, or train with configs/train_local.yaml"
    )
