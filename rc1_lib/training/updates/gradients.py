"""The gradients of one micro-batch, added to those that are there."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rc1_lib.training.spans import Part, span
from rc1_lib.training.updates.interface import PolicyLike
from rc1_lib.training.updates.objective import Objective
from rc1_lib.training.updates.own_tokens import OwnTokens


def add_gradients(
    policy: PolicyLike, objective: Objective, own: OwnTokens, scale: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """Goes forward and backward over the own tokens of a micro-batch.

    The graph is cut at the states before own tokens. Above the cut, logits of a few hundred tokens at a time are built,
    turned into gradients of their states and dropped; then one backward pass takes these through the model. The result
    is the same, and never more than a chunk of logits is in memory.

    Args:
        policy: its gradients grow.
        objective: what is to be learned.
        own: the micro-batch.
        scale: what is done to a loss before going backward; the identity but for fp16.

    Returns:
        The objective's sums over the own tokens, all detached scalars.
    """
    with span(Part.FORWARD), torch.set_grad_enabled(not objective.frozen):
        hidden_ND = own.hidden(policy)
    field_N = objective.fields(own)
    totals: dict[str, Tensor] = {}
    gradients: list[Tensor] = []
    for part in own.chunks():
        states_nD = hidden_ND[part].detach().requires_grad_(hidden_ND.requires_grad)
        with span(Part.FORWARD):
            chunk = objective.loss(policy, states_nD, {name: field[part] for name, field in field_N.items()})
        with span(Part.BACKWARD):
            scale(chunk.loss).backward()  # type: ignore[no-untyped-call]
        if states_nD.grad is not None:
            gradients.append(states_nD.grad)
        for name, value in chunk.sums.items():
            totals[name] = totals[name] + value if name in totals else value
    if gradients:
        with span(Part.BACKWARD):
            hidden_ND.backward(torch.cat(gradients))  # type: ignore[no-untyped-call]
    return totals
