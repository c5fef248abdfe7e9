"""The losses of PPO, as sums over tokens divided by a normaliser that the caller fixes.

A mean over each micro-batch would weigh a token by how many others happen to share its micro-batch, and so under-weigh
the long episodes, which are the ones that ask. One normaliser for the whole iteration weighs every token alike.

Source: Schulman et al., "Proximal Policy Optimization Algorithms" (2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss with what is to be reported about it.

    Attributes:
        loss: a scalar to go backward from.
        sums: detached scalars, sums over tokens, so that those of micro-batches add up.
    """

    loss: Tensor
    sums: dict[str, Tensor]


def policy_loss(logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, clip: float, normaliser: float) -> Loss:
    """The clipped surrogate: minus the sum of min(ratio * A, clip(ratio, 1 - clip, 1 + clip) * A) / normaliser.

    Args:
        logprobs: (N,), of own tokens under the policy now.
        old_logprobs: (N,), of the same tokens as sampled.
        advantages: (N,).
        clip: above 0.
        normaliser: tokens of one optimizer step, above 0.

    Returns:
        The loss; sums `policy_loss`, `ratio`, `ratio_squared`, `approxkl` (the never negative k3 estimate of the KL
        between the policy as sampled and now), `gap` (absolute log-ratios), `clipped` (tokens whose gradient the
        clipping ended).
    """
    log_ratio = logprobs - old_logprobs
    ratio = log_ratio.exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1 - clip, 1 + clip) * advantages
    loss = -torch.minimum(plain, clipped).sum() / normaliser
    with torch.no_grad():
        sums = {
            "policy_loss": loss.detach(),
            "ratio": ratio.sum(),
            "ratio_squared": ratio.square().sum(),
            "approxkl": (torch.expm1(log_ratio) - log_ratio).sum(),
            "gap": log_ratio.abs().sum(),
            "clipped": (clipped < plain).sum().to(loss.dtype),
        }
    return Loss(loss, sums)


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


def entropy_loss(entropies: Tensor, *, normaliser: float) -> Loss:
    """Minus the entropies (N,) of the distributions at own tokens; its sum `entropy` is the entropies' own."""
    return Loss(-entropies.sum() / normaliser, {"entropy": entropies.detach().sum()})
