"""The gradients of one micro-batch, added to those that are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.ppo.batch import PPOBatch
from rc1_lib.training.ppo.interface import PolicyLike
from rc1_lib.training.ppo.logprobs import entropy, log_distribution
from rc1_lib.training.ppo.losses import Loss, entropy_loss, policy_loss, value_loss
from rc1_lib.training.ppo.own_tokens import OwnTokens
from rc1_lib.training.ppo.settings import PPOSettings
from rc1_lib.training.ppo.targets import Targets
from rc1_lib.training.spans import Part, span


@dataclass(frozen=True, slots=True)
class Lesson:
    """What stays the same throughout one update.

    Attributes:
        batch: all episodes.
        targets: of the batch.
        settings: of the update.
        normaliser: own tokens of one optimizer step, the same number for each.
        frozen: whether only the value head learns.
    """

    batch: PPOBatch
    targets: Targets
    settings: PPOSettings
    normaliser: float
    frozen: bool


def add_gradients(
    policy: PolicyLike, lesson: Lesson, own: OwnTokens, scale: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """Goes forward and backward over the own tokens of a micro-batch.

    The graph is cut at the states before own tokens. Above the cut, logits of a few hundred tokens at a time are built,
    turned into gradients of their states and dropped; then one backward pass takes these through the model. The result
    is the same, and never more than a chunk of logits is in memory.

    Args:
        policy: its gradients grow.
        lesson: what is to be learned.
        own: the micro-batch.
        scale: what is done to a loss before going backward; the identity but for fp16.

    Returns:
        Sums over the own tokens as named in `losses`, and `loss`, all detached scalars.
    """
    with span(Part.FORWARD), torch.set_grad_enabled(not lesson.frozen):
        hidden_ND = own.hidden(policy)
    field_N = {
        "actions": own.of(lesson.batch.ids),
        "old_logprobs": own.of(lesson.batch.old_logprobs),
        "advantages": own.of(lesson.targets.advantages),
        "old_values": own.of(lesson.targets.values),
        "returns": own.of(lesson.targets.returns),
    }
    totals: dict[str, Tensor] = {}
    gradients: list[Tensor] = []
    for part in own.chunks():
        states_nD = hidden_ND[part].detach().requires_grad_(hidden_ND.requires_grad)
        with span(Part.FORWARD):
            chunk = _chunk_loss(policy, lesson, states_nD, {name: field[part] for name, field in field_N.items()})
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


def _chunk_loss(policy: PolicyLike, lesson: Lesson, states_nD: Tensor, field_n: dict[str, Tensor]) -> Loss:
    """Policy, entropy and value loss of a chunk of states together."""
    settings, normaliser = lesson.settings, lesson.normaliser
    with torch.set_grad_enabled(not lesson.frozen):
        log_p_nV = log_distribution(policy.logits(states_nD), settings.temperature)
        logprobs_n = log_p_nV.gather(1, field_n["actions"][:, None])[:, 0]
        surrogate = policy_loss(
            logprobs_n, field_n["old_logprobs"], field_n["advantages"], clip=settings.clip, normaliser=normaliser
        )
    # Where the bonus weighs nothing the entropy is measured without a graph over the whole vocabulary.
    with torch.set_grad_enabled(not lesson.frozen and settings.ppo.entropy_coef > 0):
        bonus = entropy_loss(entropy(log_p_nV), normaliser=normaliser)
    worth = value_loss(
        policy.value_head(states_nD),
        field_n["old_values"],
        field_n["returns"],
        clip=settings.ppo.value_clip,
        normaliser=normaliser,
    )
    loss = surrogate.loss + settings.ppo.entropy_coef * bonus.loss + settings.ppo.value_coef * worth.loss
    return Loss(loss, {"loss": loss.detach(), **surrogate.sums, **bonus.sums, **worth.sums})
