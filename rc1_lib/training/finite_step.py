"""What supervised engines ask before their optimizer takes a step: are loss and gradient numbers?"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from rc1_lib.training.diverged import refuse_not_finite

_REMEDY = "nothing was learned from this step; lower the learning rate, or look at the rows and the base it began with"


def check_finite_loss(loss: float) -> None:
    """Refuse a loss that is NaN or infinite, also under fp16: a scaler mends gradients, not what went forward.

    Raises:
        DivergedError: when it is.
    """
    refuse_not_finite("the loss", loss, _REMEDY)


def check_finite_gradient(parameters: Iterable[nn.Parameter], scaler: torch.amp.GradScaler | None) -> None:
    """Refuse a gradient that is not finite, unless `scaler` is in use: it skips such a step and scales less.

    Raises:
        DivergedError: when it is not.
    """
    if scaler is not None and scaler.is_enabled():
        return
    gradients: list[Tensor] = [each.grad for each in parameters if each.grad is not None]
    refuse_not_finite("the gradient's norm", float(nn.utils.get_total_norm(gradients)), _REMEDY)
