"""The seams of training: what an engine is set up by, and what engine, strategy, batches and callbacks have to offer.

The names and signatures are the specification's. `Trainer` (in `trainer`) calls them in this order:

    engine.setup(setup), strategy.attach_engine(engine), then for every step:
    batch = batches.next(), strategy.on_batch(batch), engine.train_step(batch), every callback's on_step

A strategy decides *what* is learned from: `on_batch` may put fields into the batch (trajectories, rewards, advantages),
which `train_step` finds there, and it returns metrics of its own. An engine decides *how*: `train_step` is one step of
the optimizer, whatever it takes. Both metrics join in one record; a name in both is a mistake and is not resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from rc1_lib.config.run_config import RunConfig
from rc1_lib.config.updates import Steps
from rc1_lib.training.device import ORDER
from rc1_lib.training.models import model_section
from rc1_lib.training.train_config import ModelSection

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


@dataclass(frozen=True, slots=True)
class Setup:
    """What an engine is set up by; a run makes it by `Setup.of_run`, a file of rows by `train_local.setup_of`.

    Attributes:
        model: the base, which is the reference too, and how it is adapted; without an adapter all weights are trained.
        lr: learning rate.
        update: how the data of a step become steps of the optimizer.
        rows: episodes or demonstrations of a step.
        max_tokens: of the longest demonstration.
        precision: `auto`, or the best that is wanted; a device that lacks it takes the next.
        seed: decides first weights, minibatches and what is sampled.
        devices: kinds of devices, the first that is there is taken.
        run: the configuration by which the policy plays; None for rows of a file, from which it learns alone.
    """

    model: ModelSection
    lr: float
    update: Steps
    rows: int
    max_tokens: int
    precision: str
    seed: int
    devices: tuple[str, ...] = ORDER
    run: RunConfig | None = None

    @classmethod
    def of_run(cls, config: RunConfig, base: str, seed: int) -> Self:
        """For an engine of a run.

        Args:
            config: of the run.
            base: the folder or hub name of the policy that is started from.
            seed: of the run.

        Raises:
            ConfigError: for a method of finetuning that is not known.
        """
        training, model = config.training, model_section(config, base)
        return cls(
            model=model,
            lr=config.lr,
            update=training.update,
            rows=config.batch_size,
            max_tokens=training.max_tokens,
            precision=training.precision,
            seed=seed,
            run=config,
        )

    @property
    def config(self) -> RunConfig:
        """The configuration of the run, for an engine that plays."""
        assert self.run is not None, "rows of a file are no run"
        return self.run


class Engine(Protocol):
    """The machinery that holds a model and changes it."""

    def setup(self, setup: Setup) -> None:
        """Build model, optimizer and whatever else is needed.

        Raises:
            RC1Error: when the configuration asks for what cannot be had here.
        """
        ...

    def train_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """One step of the optimizer; returns at least `loss`."""
        ...

    def eval_step(self, batch: dict[str, Any]) -> dict[str, float]:
        """Metrics of a batch without learning from it: means per token, and `tokens`, their number.

        Asked of rows of a file; a run plays held-out rows instead.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that changes while training. Its keys become files of the checkpoint: adapter, optimizer, ..."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave, after `setup`."""
        ...

    def close(self) -> None:
        """Let go of whatever `setup` started; the engine is of no more use. Nothing, where that is nothing."""
        return None


class Strategy(Protocol):
    """What is learned from a batch."""

    def attach_engine(self, engine: Engine) -> None:
        """Called once, after the engine's setup.

        Raises:
            RC1Error: when this engine lacks what the strategy needs.
        """
        ...

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Prepare the batch in place for `train_step`, and return metrics of the preparation."""
        ...


class Batches(Protocol):
    """An endless source of batches that knows where it is."""

    def next(self) -> dict[str, Any]:
        """The batch of the next step."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Where it is."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to where `state_dict` was taken."""
        ...


class Callback:
    """Something that happens besides the steps; every hook is empty, for others to fill.

    Attributes:
        name: of its state in a checkpoint.
    """

    name = "callback"

    def on_start(self, trainer: Trainer) -> None:
        """Before the first step of this process; engine and step are set up, or restored."""

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """After a step. What is put into `metrics` is seen by the callbacks after it."""

    def on_end(self, trainer: Trainer) -> None:
        """After the last step; not after an error in a step. All callbacks come to it, even if one of them raises."""

    def state_dict(self) -> dict[str, Any]:
        """What it has to remember across processes."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave; comes before `on_start`."""
