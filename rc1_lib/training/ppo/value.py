"""The value head: what a state will return, from the policy's hidden state; and its fit to what episodes returned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rc1_lib.training.device import to_device
from rc1_lib.training.updates.optimizer_step import OptimizerStep


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


TOKENS = 1024
"""States of one step: many from one episode say the same, so few at a time would pull to and fro."""


def fit_values(
    head: nn.Module,
    states_ND: Tensor,
    returns_N: Tensor,
    optimizer_step: OptimizerStep,
    epochs: int,
    generator: torch.Generator,
) -> None:
    """Fits the head by least squares to the returns of states, in passes over all of them in random order.

    A baseline that knows which prompts are hard takes that from the advantages, and what is left is what the policy
    did. The few steps it takes next to the policy are too few to learn it. The states are fixed: the policy's own
    weights are not moved, and the next iteration, whose episodes are others, uses the head.

    Args:
        head: states (n, D) to values (n,); stepped in place.
        states_ND: of own tokens.
        returns_N: what each should have been worth.
        optimizer_step: over an optimizer that holds the head's parameters; parameters without gradient are left alone.
        epochs: passes; 0 does nothing.
        generator: on the CPU; moved on by one permutation a pass.
    """
    for _ in range(epochs):
        order_N = to_device(torch.randperm(len(returns_N), generator=generator), states_ND.device)
        for part in torch.split(order_N, TOKENS):
            loss = 0.5 * (head(states_ND[part]) - returns_N[part]).square().mean()
            optimizer_step.scale(loss).backward()  # type: ignore[no-untyped-call]
            optimizer_step.step()
