"""The losses of PPO.

Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017).
"""

from __future__ import annotations

import torch
from torch import Tensor

from rc1_lib.training.updates.losses import Loss, clipped_surrogate


def policy_loss(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, clip: float, normaliser: float) -> Loss:
    """Minus the sum of the clipped surrogate / normaliser, see `clipped_surrogate`.

    Args:
        logprobs: (N,), of own tokens under the policy now.
        old_logprobs: (N,), of the same tokens as sampled.
        advantages: (N,).
        clip: above 0.
        normaliser: tokens of one optimizer step, above 0.

    Returns:
        The loss; sums `policy_loss` and those of the surrogate.
    """
    surrogate = clipped_surrogate(logprobs, old_logprobs, advantages, low=clip, high=clip)
    loss = -surrogate.gains.sum() / normaliser
    return Loss(loss, {"policy_loss": loss.detach(), **surrogate.sums})


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, *, clip: float, normaliser: float) -> Loss:
    """Half the squared error, the worse of the value and the value kept within `clip` of the old one.

    Args:
        values: (N,), of the states before own tokens, now.
        old_values: (N,), before the update.
        returns: (N,).
        clip: above 0; infinity turns the clipping off.
        normaliser: tokens of one optimizer step, above 0.

    Returns:
        The loss; sums `value_loss`, `value_clipped` (tokens whose gradient the clipping ended).
    """
    plain = (values - returns).square()
    kept = old_values + (values - old_values).clamp(-clip, clip)
    clipped = (kept - returns).square()
    loss = 0.5 * torch.maximum(plain, clipped).sum() / normaliser
    sums = {"value_loss": loss.detach(), "value_clipped": (clipped > plain).sum().to(loss.dtype)}
    return Loss(loss, sums)
