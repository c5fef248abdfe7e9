"""The optimizer's step: unscaled, checked, clipped, taken, counted."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

from rc1_lib.training.diverged import refuse_not_finite

Gradients = dict[int, Tensor]
"""Place of a parameter in its optimizer -> its gradient; parameters without one are left out."""


class OptimizerStep:
    """An optimizer with what stands around its steps; gradients that were there before are dropped."""

    def __init__(self, optimizer: Optimizer, max_grad_norm: float, scaler: torch.amp.GradScaler | None) -> None:
        """Around `optimizer`; `scaler` is for fp16 only, and skips steps whose gradients are not finite."""
        self.optimizer, self.max_grad_norm = optimizer, max_grad_norm
        self.scaler = scaler if scaler is not None else torch.amp.GradScaler(enabled=False)
        self.norms: list[float] = []
        self.drop()

    @property
    def _parameters(self) -> list[nn.Parameter]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def scale(self, loss: Tensor) -> Tensor:
        """The loss as it is to go backward."""
        scaled: Tensor = self.scaler.scale(loss)
        return scaled

    def drop(self) -> None:
        """Forgets the gradients; None instead of zeros, so that the optimizer leaves frozen parameters alone."""
        self.optimizer.zero_grad(set_to_none=True)

    def taken(self) -> Gradients:
        """The gradients that have come together, taken away from the parameters."""
        found = {place: each.grad for place, each in enumerate(self._parameters) if each.grad is not None}
        self.drop()
        return found

    def add(self, gradients: Gradients) -> None:
        """Adds what `taken` gave, here or in another process."""
        parameters = self._parameters
        for place, gradient in gradients.items():
            there = parameters[place].grad
            parameters[place].grad = gradient if there is None else there + gradient

    def step(self) -> None:
        """Takes one step along the gradients, clipped to the norm over all parameters, and forgets them.

        Raises:
            DivergedError: when the gradients are not finite and no scaler is there to skip the step.
        """
        self.scaler.unscale_(self.optimizer)
        norm = float(clip_grad_norm_(self._parameters, self.max_grad_norm))
        if not self.scaler.is_enabled():
            refuse_not_finite(
                f"the gradient's norm at step {len(self.norms) + 1} of the update",
                norm,
                "the policy has left what it was; lower the learning rate, or stop earlier on the KL",
            )
        self.norms.append(norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.drop()

    def metrics(self) -> dict[str, float]:
        """`grad_norm`, the mean before clipping (0 without a step), and `update/steps`."""
        return {"grad_norm": sum(self.norms) / max(len(self.norms), 1), "update/steps": float(len(self.norms))}
