"""The learning rate as a function of the step. It has no state, so resuming cannot shift it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Callback

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from rc1_lib.training.trainer import Trainer

Kind = Literal["constant", "linear", "cosine"]


class LRSchedule(Callback):
    """Linear warm-up, then a constant rate, or a linear or cosine decay to 0 at the last step."""

    name = "lr_schedule"

    def __init__(self, kind: Kind, warmup_steps: int) -> None:
        """Keep the kind of decay and the number of warm-up steps."""
        self._kind, self._warmup = kind, warmup_steps

    def on_start(self, trainer: Trainer) -> None:
        """Set the rate of the first step."""
        self._set(trainer)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Set the rate of the next step."""
        self._set(trainer)

    def factor(self, step: int, max_steps: int) -> float:
        """Return the factor of the configured rate after `step` finished steps."""
        if step < self._warmup:
            return (step + 1) / self._warmup
        if self._kind == "constant":
            return 1.0
        gone = min((step - self._warmup) / max(max_steps - self._warmup, 1), 1.0)
        return 1.0 - gone if self._kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * gone))

    def _set(self, trainer: Trainer) -> None:
        factor, engine = self.factor(trainer.step, trainer.max_steps), trainer.engine
        optimizer: Optimizer | None = getattr(engine, "optimizer", None)
        if optimizer is None:
            raise ConfigError(
                f"lr_schedule needs an engine with an `optimizer`, {type(engine).__name__} has none; leave "
                "lr_schedule out"
            )
        for group in optimizer.param_groups:
            # Stored in the group, so that a checkpoint of the optimizer also has the configured rate.
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor
