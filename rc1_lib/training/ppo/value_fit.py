"""The value head alone, fitted to what an iteration's episodes returned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rc1_lib.training.device import to_device
from rc1_lib.training.updates.optimizer_step import OptimizerStep

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
