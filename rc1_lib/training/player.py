"""What strategies and the evaluation need of an engine: a policy that plays episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor

from rc1_lib.errors import ConfigError
from rc1_lib.records import MeasuredRow
from rc1_lib.training.api import Engine
from rc1_lib.training.play import Playground
from rc1_lib.training.rollout.trajectory import Trajectory


class Plays(Protocol):
    """What an evaluation needs to put questions: something whose policy plays episodes."""

    def play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], *, temperature: float, seed: int, iteration: int
    ) -> list[Trajectory]:
        """Play every row once, see `Player.play`."""
        ...


@runtime_checkable
class Player(Protocol):
    """An engine, set up, whose policy can play episodes.

    Attributes:
        playground: says what each episode was worth.
        seed: of the run; with step and episode it decides what is sampled.
        temperature: that episodes are sampled at.
    """

    playground: Playground
    seed: int
    temperature: float

    def play(
        self,
        rows: Sequence[MeasuredRow],
        keys: Sequence[str],
        *,
        temperature: float,
        seed: int,
        iteration: int,
        to_learn: bool = False,
    ) -> list[Trajectory]:
        """Play every row once, as `Playground.play` does; before anything was learned or loaded, with the base.

        Args:
            rows: of the pool's schema.
            keys: name each episode's random numbers.
            temperature: 0 is greedy.
            seed: with `iteration` and the key it decides what is sampled.
            iteration: of the training.
            to_learn: whether the engine learns from these episodes: what it needs for that is kept with them.
        """
        ...

    def close(self) -> None:
        """Let go of whatever was started to play; nothing is played afterwards."""
        ...

    def load_adapter(self, adapter: Mapping[str, Tensor]) -> None:
        """Play with these weights from now on: the part `adapter` of the engine's state, out of a checkpoint.

        Raises:
            RC1Error: when it does not fit the model.
        """
        ...


def player_for(strategy: str, engine: Engine) -> Player:
    """The engine as the one that a strategy of a run needs.

    Raises:
        ConfigError: when it has no policy that plays.
    """
    if not isinstance(engine, Player):
        raise ConfigError(
            f"training.strategy: found '{strategy}', but the engine {type(engine).__name__} plays no episodes; "
            f"implement rc1_lib.training.player.Player, or take another engine"
        )
    return engine
