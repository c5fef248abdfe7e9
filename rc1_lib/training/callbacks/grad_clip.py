"""Clip the gradient's norm before the optimizer sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from rc1_lib.training.callbacks.quiet import Quiet
from rc1_lib.training.callbacks.tuning import tunable

if TYPE_CHECKING:
    from rc1_lib.training.trainer import Trainer


class GradClip(Quiet):
    """Scales all gradients together so that their norm is at most `max_norm`; reports `grad_norm`, before it."""

    name = "grad_clip"

    def __init__(self, max_norm: float) -> None:
        """Clip to `max_norm`."""
        self._max_norm = max_norm

    def on_start(self, trainer: Trainer) -> None:
        """Take a place between backward and the optimizer's step."""
        tunable(trainer.engine, self.name).gradient_hooks.append(self.clip)

    def clip(self, parameters: Sequence[nn.Parameter]) -> dict[str, float]:
        """Clip in place; returns the norm before."""
        return {"grad_norm": float(nn.utils.clip_grad_norm_(parameters, self._max_norm))}
