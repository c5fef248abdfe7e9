"""Advantages of takes: how much better one was than the others of its prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

EPSILON = 1e-4
"""Added to a deviation before it divides, as in TRL."""


@dataclass(frozen=True, slots=True)
class GroupAdvantages:
    """What takes are worth compared with their group's.

    Attributes:
        advantages: (B,), 0 where all takes of a group scored the same.
        flat: the share of groups whose takes all scored the same: nothing is learned from them.
    """

    advantages: Tensor
    flat: float


def group_advantages(scores_B: Tensor, groups_B: Tensor, scale: Literal["group", "batch", "none"]) -> GroupAdvantages:
    """Each score less the mean of its group, in deviations of the group, of the batch, or as it is.

    Deviations are those of samples (n - 1), as TRL's are. A group of one take has no other to be compared with; its
    advantage is 0.

    Sources: Shao et al., "DeepSeekMath" (2024), section 4.1.2, for `group`; Liu et al., "Understanding R1-Zero-Like
    Training" (Dr. GRPO, 2025), section 3.2, for `none`: dividing by a group's deviation weighs up prompts that are
    nearly always or hardly ever solved; Liu et al., "Part I: Tricks or Traps?" (2025), for `batch`.

    Args:
        scores_B: (B,), finite.
        groups_B: int64 (B,), number of each take's group, from 0.
        scale: what differences are divided by.
    """
    sizes_G = torch.bincount(groups_B).to(scores_B.dtype)
    means_G = torch.zeros_like(sizes_G).index_add(0, groups_B, scores_B) / sizes_G
    centred_B = scores_B - means_G[groups_B]
    squares_G = torch.zeros_like(sizes_G).index_add(0, groups_B, centred_B.square())
    deviations_G = (squares_G / (sizes_G - 1).clamp(min=1)).sqrt()
    least_G, most_G = (
        torch.zeros_like(sizes_G).scatter_reduce(0, groups_B, scores_B, end, include_self=False)
        for end in ("amin", "amax")
    )
    flat = float((least_G == most_G).double().mean())
    if scale == "group":
        centred_B = centred_B / (deviations_G[groups_B] + EPSILON)
    elif scale == "batch" and len(scores_B) > 1:
        centred_B = centred_B / (scores_B.std() + EPSILON)
    return GroupAdvantages(centred_B, flat)
