"""Interfaces of training: the setup of an engine, and what engine, strategy, batches and callbacks must offer.

Names are those of the specification; `setup` takes a `Setup`, which holds what of a configuration an engine needs.
`Trainer` calls them in this order:

    engine.setup(setup), strategy.attach_engine(engine), then for every step:
    batch = batches.next(), strategy.on_batch(batch), engine.train_step(batch), every callback's on_step

A strategy decides *what* to learn from. Its `on_batch` may add fields to the batch (trajectories, rewards, advantages)
for `train_step`, and returns its own metrics. An engine decides *how*: `train_step` is one update of the weights, with
as many optimizer steps as it needs. The metrics of both go into one record, so their names must not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from rc1_lib.config.engines import ENGINES, STRATEGIES, LearnsFrom, Spec, names_of, own_name
from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.updates import Steps
from rc1_lib.errors import ConfigError
from rc1_lib.training.device import ORDER
from rc1_lib.training.models import model_section
from rc1_lib.training.train_config import ModelSection

if TYPE_CHECKING:
    from rc1_lib.training.episode_judge import EpisodeJudge
    from rc1_lib.training.trainer import Trainer


@dataclass(frozen=True, slots=True)
class Setup:
    """How to set up an engine: by `Setup.of_run` for a run, by `train_local.setup_of` for rows of a file.

    Attributes:
        model: the base, which is also the reference policy, and its adapter. Without an adapter all weights are
            trained.
        lr: learning rate.
        update: how the data of a step become optimizer steps.
        rows: episodes or demonstrations in a step.
        precision: `auto`, or the best precision wanted. A device that lacks it uses the next lower one.
        seed: decides initial weights, minibatches and sampled tokens.
        devices: kinds of devices in order of preference. The first available one is used.
        run: configuration of the run in which the policy plays. None for rows of a file, where it only learns.
    """

    model: ModelSection
    lr: float
    update: Steps
    rows: int
    precision: str
    seed: int
    devices: tuple[str, ...] = ORDER
    run: RunConfig | None = None

    @classmethod
    def of_run(cls, config: RunConfig, base: str, seed: int) -> Self:
        """Create the setup of a run's engine.

        Args:
            base: folder or hub name of the initial policy.

        Raises:
            ConfigError: if the finetuning method is unknown.
        """
        training, model = config.training, model_section(config, base)
        return cls(
            model=model,
            lr=config.lr,
            update=training.update,
            rows=config.batch_size,
            precision=training.precision,
            seed=seed,
            run=config,
        )

    @property
    def config(self) -> RunConfig:
        """The configuration of the run. Only an engine that plays may ask for it."""
        assert self.run is not None, "this setup is for rows of a file and has no run"
        return self.run


class Engine(Protocol):
    """Holds a model and trains it."""

    def setup(self, setup: Setup) -> None:
        """Build model, optimizer and whatever else is needed.

        Raises:
            RC1Error: if the configuration asks for something that this machine or engine cannot do.
        """
        ...

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Do one update and return its metrics, at least `loss`."""
        ...

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Return metrics of a batch without learning from it: means per token, and `tokens`, their number.

        Called only for rows of a file. A run plays held-out rows instead.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return everything that training changes. The keys become files of the checkpoint: adapter, optimizer, ..."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, after `setup`."""
        ...

    def close(self) -> None:
        """Release what `setup` started. The engine cannot be used afterwards. The default does nothing."""
        return None


class Strategy(Protocol):
    """Decides what to learn from a batch."""

    def attach_engine(self, engine: Engine) -> None:
        """Keep the engine. Called once, after its setup.

        Raises:
            RC1Error: if this engine lacks what the strategy needs.
        """
        ...

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Prepare the batch in place for `train_step`, and return metrics of the preparation."""
        ...


class Batches(Protocol):
    """An endless source of batches that can be saved and restored."""

    def next(self) -> dict[str, Any]:
        """Return the batch of the next step."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the source."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the position that `state_dict` returned."""
        ...


class Callback:
    """Called by the trainer at every step. The hooks do nothing; subclasses override those they need.

    Attributes:
        name: of its state in a checkpoint.
    """

    name = "callback"

    def on_start(self, trainer: Trainer) -> None:
        """Called before the first step of this process, after engine and step are set up or restored."""

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Called after each step. Later callbacks see what this one adds to `metrics`."""

    def on_end(self, trainer: Trainer) -> None:
        """Called after the last step, unless a step has raised. All callbacks are called, even if one raises."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state to keep in checkpoints."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. Called before `on_start`."""


# Create the configured engines and strategies. Their modules are imported only when needed.


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
