"""Advantages of the policy's tokens, across the turns of an episode."""

from __future__ import annotations

import torch
from torch import Tensor


def generalised_advantages(
    rewards_BT: Tensor, values_BT: Tensor, own_BT: Tensor, *, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation over own tokens only.

    An action is an own token, its value that of the state before it. What comes between two own tokens, an observation
    for instance, belongs to the step of the first: the successor of an own token is the next own token, however far.
    The last own token is the end: every end of an episode, limits included, is part of the task, so nothing is
    expected after it.

    Source: Schulman et al., "High-Dimensional Continuous Control Using Generalized Advantage Estimation" (2016).

    Args:
        rewards_BT: (B, T), read at own tokens only.
        values_BT: (B, T), at each own token the value of the state before it; read at own tokens only.
        own_BT: bool (B, T).
        gamma: discount per own token.
        lam: 0 trusts the values, 1 the rewards.

    Returns:
        Advantages and returns (advantage + value), both (B, T) and 0 where not own.
    """
    advantages_BT = torch.zeros_like(rewards_BT)
    advantage_B = torch.zeros_like(rewards_BT[:, 0])
    next_value_B = torch.zeros_like(advantage_B)
    for step in reversed(range(rewards_BT.shape[1])):
        own_B, value_B = own_BT[:, step], values_BT[:, step]
        delta_B = rewards_BT[:, step] + gamma * next_value_B - value_B
        advantage_B = torch.where(own_B, delta_B + gamma * lam * advantage_B, advantage_B)
        next_value_B = torch.where(own_B, value_B, next_value_B)
        advantages_BT[:, step] = torch.where(own_B, advantage_B, 0.0)
    return advantages_BT, torch.where(own_BT, advantages_BT + values_BT, 0.0)
