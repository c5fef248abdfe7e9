"""Training that left the finite numbers, and the looks at a loss and its gradient that find it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


class DivergedError(ArithmeticError):
    """No input is to blame and nothing was refused: a fault of the run, which ends with exit code 1 and a report."""


def refuse_not_finite(what: str, found: float, remedy: str) -> None:
    """Refuse to learn on from a number that is none; asked before the optimizer's step.

    Args:
        what: what is measured.
        found: the number.
        remedy: what to do.

    Raises:
        DivergedError: when it is NaN or infinite.
    """
    if not math.isfinite(found):
        raise DivergedError(f"{what} is {found}, expected a finite number: {remedy}")


@contextmanager
def naming_step(step: int) -> Iterator[None]:
    """Say in which step the block left the finite numbers.

    Raises:
        DivergedError: as in the block, with the step before it.
    """
    try:
        yield
    except DivergedError as error:
        raise DivergedError(f"step {step}: {error}") from error


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
    from torch.nn.utils import get_total_norm  # here, since checkpoints are verified where torch is not installed

    gradients: list[Tensor] = [each.grad for each in parameters if each.grad is not None]
    refuse_not_finite("the gradient's norm", float(get_total_norm(gradients)), _REMEDY)
