"""Divergence: checks that a loss and its gradients are finite, and the error if they are not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


class DivergedError(ArithmeticError):
    """Training has diverged. It is a fault of the run, not of an input, so it ends with exit code 1 and a report."""


def check_finite(what: str, found: float, remedy: str) -> None:
    """Check before an optimizer step that a number is finite.

    Args:
        remedy: what to do.

    Raises:
        DivergedError: if it is NaN or infinite.
    """
    if not math.isfinite(found):
        raise DivergedError(f"{what} is {found}, expected a finite number: {remedy}")


@contextmanager
def naming_step(step: int) -> Iterator[None]:
    """Add the step's number to a DivergedError in the block.

    Raises:
        DivergedError: from the block, with the step in front.
    """
    try:
        yield
    except DivergedError as error:
        raise DivergedError(f"step {step}: {error}") from error


_REMEDY = "nothing was learned from this step; lower the learning rate, or check the rows and the base it began with"


def check_finite_loss(loss: float) -> None:
    """Check that a loss is finite, also in fp16, where the scaler handles gradients but not the loss itself.

    Raises:
        DivergedError: if it is not.
    """
    check_finite("the loss", loss, _REMEDY)


def check_finite_gradient(parameters: Iterable[nn.Parameter], scaler: torch.amp.GradScaler | None) -> None:
    """Check that the gradient is finite, unless `scaler` is enabled, which skips such a step and lowers its scale.

    Raises:
        DivergedError: if it is not.
    """
    if scaler is not None and scaler.is_enabled():
        return
    from torch.nn.utils import get_total_norm  # here, because checkpoints are verified without torch installed

    gradients: list[Tensor] = [each.grad for each in parameters if each.grad is not None]
    check_finite("the gradient's norm", float(get_total_norm(gradients)), _REMEDY)
