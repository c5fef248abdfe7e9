"""Losses as sums over tokens divided by a normaliser that the caller fixes, and what the clipped surrogate gains.

A mean over each micro-batch would weigh a token by how many others happen to share its micro-batch, and so under-weigh
the long episodes, which are the ones that ask. One normaliser for the whole iteration weighs every token alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rc1_lib.training.updates.kl import kl_k3

FAR = 0.1
"""Nats between two log-probabilities of a token that count as far apart: the ratio leaves 0.905 to 1.105."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss with what is to be reported about it.

    Attributes:
        loss: a scalar to go backward from.
        sums: detached scalars, sums over tokens, so that those of micro-batches add up.
    """

    loss: Tensor
    sums: dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Surrogate:
    """What tokens gain, each by itself.

    Attributes:
        gains: (N,), to be made large.
        sums: as of a `Loss`.
    """

    gains: Tensor
    sums: dict[str, Tensor]


def clipped_surrogate(
    logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, *, low: float, high: float
) -> Surrogate:
    """min(ratio * A, clip(ratio, 1 - low, 1 + high) * A) of every token.

    Sources: Schulman et al., "Proximal Policy Optimization Algorithms" (2017), where both bounds are one; Yu et al.,
    "DAPO" (2025), section 3.1, where they are two.

    Args:
        logprobs: (N,), of own tokens under the policy now.
        old_logprobs: (N,), of the same tokens as sampled.
        advantages: (N,).
        low: above 0.
        high: above 0.

    Returns:
        The gains; sums `ratio`, `ratio_squared`, `approxkl` (the never negative k3 estimate of the KL between the
        policy as sampled and now), `gap` (absolute log-ratios), `far` (tokens whose log-ratio is beyond `FAR`),
        `clipped` (tokens whose gradient the clipping ended).
    """
    log_ratio = logprobs - old_logprobs
    ratio = log_ratio.exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1 - low, 1 + high) * advantages
    with torch.no_grad():
        sums = {
            "ratio": ratio.sum(),
            "ratio_squared": ratio.square().sum(),
            "approxkl": kl_k3(old_logprobs, logprobs).sum(),
            "gap": log_ratio.abs().sum(),
            "far": (log_ratio.abs() > FAR).sum().to(plain.dtype),
            "clipped": (clipped < plain).sum().to(plain.dtype),
        }
    return Surrogate(torch.minimum(plain, clipped), sums)


def entropy_loss(entropies: Tensor, *, normaliser: float) -> Loss:
    """Minus the entropies (N,) of the distributions at own tokens; its sum `entropy` is the entropies' own."""
    return Loss(-entropies.sum() / normaliser, {"entropy": entropies.detach().sum()})
