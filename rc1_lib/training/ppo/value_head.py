"""The value head: what a state is worth, from the policy's hidden state."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ValueHead(nn.Module):
    """Two layers; the second starts at zero, so that the first values are 0 and disturb nothing."""

    def __init__(self, hidden_size: int) -> None:
        """For hidden states of this size."""
        super().__init__()
        self.inner = nn.Linear(hidden_size, hidden_size)
        self.outer = nn.Linear(hidden_size, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Values (...) of hidden states (..., D), in the head's own precision whatever the model runs in."""
        # Half precision would round values and returns by more than advantages differ.
        with torch.autocast(hidden.device.type, enabled=False):
            inner = nn.functional.silu(self.inner(hidden.to(self.inner.weight.dtype)))
            values: Tensor = self.outer(inner).squeeze(-1)
        return values
