"""Pairs made from scored takes: of every group the best and the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Pair:
    """Two takes of a prompt, by their rows in the batch.

    Attributes:
        chosen: the best.
        rejected: the worst.
        differ: whether one scored more than the other; where not, nothing is learned from them.
    """

    chosen: int
    rejected: int
    differ: bool


def pairs_of(scores_B: Tensor, groups_B: Tensor) -> list[Pair]:
    """A pair for every group of at least two takes, in the order of the groups.

    Source: best and worst of several takes as in Dong et al., "RLHF Workflow: From Reward Modeling to Online RLHF"
    (2024), section 3.2.

    Args:
        scores_B: finite; of equals the first in the batch is the best, and the last the worst.
        groups_B: number of each take's group.
    """
    takes: dict[int, list[int]] = {}
    for row, group in enumerate(groups_B.tolist()):
        takes.setdefault(group, []).append(row)
    scores = scores_B.tolist()
    found = []
    for rows in (takes[group] for group in sorted(takes) if len(takes[group]) > 1):
        best, worst = max(rows, key=lambda row: (scores[row], -row)), min(rows, key=lambda row: (scores[row], -row))
        found.append(Pair(best, worst, scores[best] > scores[worst]))
    return found


def share_that_differ(pairs: Sequence[Pair]) -> dict[str, float]:
    """Metrics: `pairs/differ`, and `frac_reward_zero_std`, which is TRL's name for the share of the other pairs."""
    differ = fmean(pair.differ for pair in pairs)
    return {"pairs/differ": differ, "frac_reward_zero_std": 1.0 - differ}
