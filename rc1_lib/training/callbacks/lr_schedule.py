"""The learning rate as a function of the step: it has no state of its own, so resuming cannot shift it."""

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
    """Warms the rate up linearly, then holds it or lets it fall to 0 at the last step, linearly or on half a cosine."""

    name = "lr_schedule"

    def __init__(self, kind: Kind, warmup_steps: int) -> None:
        """Use this form with this many steps of warm-up."""
        self._kind, self._warmup = kind, warmup_steps

    def on_start(self, trainer: Trainer) -> None:
        """Set the rate of the first step."""
        self._set(trainer)

    def on_step(self, trainer: Trainer, metrics: dict[str, float | None]) -> None:
        """Set the rate of the next step."""
        self._set(trainer)

    def factor(self, step: int, max_steps: int) -> float:
        """What the configured rate is multiplied with in the step that follows `step` finished ones."""
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
                f"lr_schedule needs an engine that shows its optimizer, {type(engine).__name__} does not; leave it out"
            )
        for group in optimizer.param_groups:
            # Kept inside the group, so that the checkpoint of the optimizer holds the configured rate too.
            group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor
