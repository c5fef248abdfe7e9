"""PPO's numbers for the policy's tokens: rewards, advantages, losses. Pure functions."""

from __future__ import annotations

import torch
from torch import Tensor

from rc1_lib.training.updates.losses import Loss, clipped_surrogate


def token_rewards(scores_B: Tensor, kl_BT: Tensor, mask_BT: Tensor, kl_coef: float) -> Tensor:
    """Rewards (B, T): minus `kl_coef` times the KL at each own token, and the score at the last one; 0 elsewhere.

    Source: Ouyang et al., "Training language models to follow instructions with human feedback" (2022), section 3.4.

    Args:
        scores_B: (B,), what each episode was worth.
        kl_BT: (B, T), the KL's estimate at every token; what stands at other tokens is not read.
        mask_BT: bool (B, T), at least one True in each row.
        kl_coef: at least 0.
    """
    rewards_BT = torch.where(mask_BT, -kl_coef * kl_BT, 0.0)
    rows = torch.arange(len(mask_BT), device=mask_BT.device)
    rewards_BT[rows, last_action(mask_BT)] += scores_B
    return rewards_BT


def last_action(mask_BT: Tensor) -> Tensor:
    """The index (B,) of each row's last own token."""
    places_T = torch.arange(mask_BT.shape[1], device=mask_BT.device)
    return torch.where(mask_BT, places_T, -1).amax(dim=1)


def generalised_advantages(
    rewards_BT: Tensor, values_BT: Tensor, mask_BT: Tensor, *, gamma: float, lam: float
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
        mask_BT: bool (B, T).
        gamma: discount per own token.
        lam: 0 trusts the values, 1 the rewards.

    Returns:
        Advantages and returns (advantage + value), both (B, T) and 0 elsewhere.
    """
    advantages_BT = torch.zeros_like(rewards_BT)
    advantage_B = torch.zeros_like(rewards_BT[:, 0])
    next_value_B = torch.zeros_like(advantage_B)
    for step in reversed(range(rewards_BT.shape[1])):
        mask_B, value_B = mask_BT[:, step], values_BT[:, step]
        delta_B = rewards_BT[:, step] + gamma * next_value_B - value_B
        advantage_B = torch.where(mask_B, delta_B + gamma * lam * advantage_B, advantage_B)
        next_value_B = torch.where(mask_B, value_B, next_value_B)
        advantages_BT[:, step] = torch.where(mask_B, advantage_B, 0.0)
    return advantages_BT, torch.where(mask_BT, advantages_BT + values_BT, 0.0)


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
