"""The seams of training: what an engine, a strategy, a source of batches and a callback have to offer.

The names and signatures are the specification's. `Trainer` (in `trainer`) calls them in this order:

    engine.setup(setup), strategy.attach_engine(engine), then for every step:
    batch = batches.next(), strategy.on_batch(batch), engine.train_step(batch), every callback's on_step

A strategy decides *what* is learned from: `on_batch` may put fields into the batch (trajectories, rewards, advantages),
which `train_step` finds there, and it returns metrics of its own. An engine decides *how*: `train_step` is one step of
the optimizer, whatever it takes. Both metrics join in one record; a name in both is a mistake and is not resolved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from rc1_lib.training.setups import Setup
    from rc1_lib.training.trainer import Trainer


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


@runtime_checkable
class Scheduled(Protocol):
    """An engine whose optimizer the callback `lr_schedule` can reach."""

    optimizer: Optimizer


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


class Callback(Protocol):
    """Something that happens besides the steps."""

    name: str

    def on_start(self, trainer: Trainer) -> None:
        """Before the first step of this process; engine and step are set up, or restored."""
        ...

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """After a step. What is put into `metrics` is seen by the callbacks after it."""
        ...

    def on_end(self, trainer: Trainer) -> None:
        """After the last step; not after an error in a step. All callbacks come to it, even if one of them raises."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What it has to remember across processes."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what `state_dict` gave; comes before `on_start`."""
        ...
