"""Whitening over the policy's tokens."""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-8
"""Added to the variance, so that equal numbers become zeros."""


def whiten(numbers: Tensor, mask: Tensor) -> Tensor:
    """The numbers brought to mean 0 and (population) variance 1 over the mask; 0 outside of it.

    Args:
        numbers: any shape.
        mask: bool, same shape, at least one True; what stands elsewhere is not read.
    """
    variance, mean = torch.var_mean(numbers[mask], correction=0)
    return torch.where(mask, (numbers - mean) * torch.rsqrt(variance + EPSILON), 0.0)
