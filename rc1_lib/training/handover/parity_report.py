"""Whether a model that was written and read again is the policy: its logits and its greedy tokens, on episodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from rc1_lib.training.device import Precision
from rc1_lib.training.rollout.trajectory import Trajectory

Logits = Callable[[Tensor], Tensor]
"""Token ids (1, T) to logits (1, T, V)."""

TOLERANCE = {Precision.FP32: 1e-3, Precision.BF16: 0.5, Precision.FP16: 0.1}
"""How far a logit may be off. Adding an adapter into the weights rounds otherwise than adding what it gives: in fp32
by some 1e-5 of a logit, in 16 bits by what their mantissa leaves of logits of a few tens."""


@dataclass(frozen=True, slots=True)
class ParityReport:
    """How like the policy a model is.

    Attributes:
        episodes: greedy ones of the policy, on held-out prompts.
        tokens: own tokens of these.
        tolerance: how far a logit may be off.
        logit_difference: the largest, over the whole vocabulary at every own token.
        other_tokens: own tokens that the model would not have chosen, although the policy prefers its own by more than
            the tolerance.
        ties: own tokens that the policy prefers by less, at which either choice is right.
    """

    episodes: int
    tokens: int
    tolerance: float
    logit_difference: float
    other_tokens: int
    ties: int

    @property
    def passed(self) -> bool:
        """Whether the model is the policy; a NaN is none."""
        return self.logit_difference <= self.tolerance and not self.other_tokens

    def body(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "pass": self.passed}


@torch.no_grad()
def likeness(policy: Logits, model: Logits, greedy: Sequence[Trajectory], precision: Precision) -> ParityReport:
    """Compare a model with the policy along episodes that the policy has played greedily.

    Args:
        policy: reads with the policy.
        model: reads with the model, on any device.
        greedy: played at temperature 0.
        precision: that both compute in.
    """
    tolerance = TOLERANCE[precision]
    worst, other, ties, tokens = 0.0, 0, 0, 0
    for episode in greedy:
        ids_1T = torch.tensor([episode.ids[:-1]])
        own_N = torch.tensor(episode.own[1:]).nonzero()[:, 0]
        chosen_N = torch.tensor(episode.ids[1:])[own_N]
        ours_NV, theirs_NV = (read(ids_1T)[0].float().cpu()[own_N] for read in (policy, model))
        difference = float((ours_NV - theirs_NV).abs().max())
        worst = difference if not difference <= worst else worst  # a NaN stays
        best_N2 = ours_NV.topk(2, dim=-1).values
        close_N = best_N2[:, 0] - best_N2[:, 1] <= tolerance
        other += int(((theirs_NV.argmax(dim=-1) != chosen_N) & ~close_N).sum())
        ties += int(close_N.sum())
        tokens += len(own_N)
    return ParityReport(len(greedy), tokens, tolerance, worst, other, ties)
