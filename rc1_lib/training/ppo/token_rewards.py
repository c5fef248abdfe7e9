"""Rewards per token: the episode's score at its end, a price on moving away from the reference at every token."""

from __future__ import annotations

import torch
from torch import Tensor


def token_rewards(scores_B: Tensor, kl_BT: Tensor, own_BT: Tensor, kl_coef: float) -> Tensor:
    """Rewards (B, T): minus `kl_coef` times the KL at each own token, and the score at the last one; 0 elsewhere.

    Source: Ouyang et al., "Training language models to follow instructions with human feedback" (2022), section 3.4.

    Args:
        scores_B: (B,), what each episode was worth.
        kl_BT: (B, T), the KL's estimate at every token; what stands at tokens that are not own is not read.
        own_BT: bool (B, T), at least one True in each row.
        kl_coef: at least 0.
    """
    rewards_BT = torch.where(own_BT, -kl_coef * kl_BT, 0.0)
    rows = torch.arange(len(own_BT), device=own_BT.device)
    rewards_BT[rows, last_own(own_BT)] += scores_B
    return rewards_BT


def last_own(own_BT: Tensor) -> Tensor:
    """The index (B,) of each row's last own token."""
    places_T = torch.arange(own_BT.shape[1], device=own_BT.device)
    return torch.where(own_BT, places_T, -1).amax(dim=1)
