"""Check that exported files match the policy.

A model read from disk is compared by its logits and greedy tokens on episodes. For a GGUF file, llama.cpp's tokens are
compared with those of PyTorch and the original model, given the same token ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.device import Precision
from rc1_lib.training.export.gguf_file import GGUFType
from rc1_lib.training.export.llama_cpp import LlamaCpp
from rc1_lib.training.rollout.trajectory import Trajectory

Logits = Callable[[Tensor], Tensor]
"""Maps token ids (1, T) to logits (1, T, V)."""

TOLERANCE = {Precision.FP32: 1e-3, Precision.BF16: 0.5, Precision.FP16: 0.1}
"""Allowed difference of a logit. Merged weights round differently from a separate adapter: in fp32 by about 1e-5, in 16
bits by the precision of logits of a few tens."""
MIN_SAME_TOKENS = 0.99
MAX_LOGPROB_DIFFERENCE = {GGUFType.F32: 0.001, GGUFType.F16: 0.002, GGUFType.Q8_0: 0.02}
"""Bound of the mean difference per token, about fifteen times what was measured. llama.cpp keeps keys and values in
fp16 even with fp32 weights, and Q8_0 rounds every weight."""


@dataclass(frozen=True, slots=True)
class ParityReport:
    """How closely a model matches the policy.

    Attributes:
        episodes: number of greedy episodes of the policy on held-out prompts.
        tokens: number of their action tokens.
        tolerance: allowed difference of a logit.
        logit_difference: largest difference, over the whole vocabulary at every action token.
        other_tokens: action tokens that the model would not have chosen, although the policy prefers them by more than
            the tolerance.
        ties: action tokens that the policy prefers by less, where either choice is right.
    """

    episodes: int
    tokens: int
    tolerance: float
    logit_difference: float
    other_tokens: int
    ties: int

    @property
    def passed(self) -> bool:
        """Whether the model matches the policy. NaN fails, and so does a comparison without tokens."""
        return self.tokens > 0 and self.logit_difference <= self.tolerance and not self.other_tokens

    def body(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "pass": self.passed}


@torch.no_grad()
def parity(policy: Logits, model: Logits, greedy: Sequence[Trajectory], precision: Precision) -> ParityReport:
    """Compare a model with the policy on greedy episodes of the policy.

    Args:
        policy: computes the policy's logits.
        model: computes the model's logits, on any device.
        greedy: episodes played at temperature 0.
    """
    tolerance = TOLERANCE[precision]
    worst, other, ties, tokens = 0.0, 0, 0, 0
    for episode in greedy:
        ids_1T = torch.tensor([episode.ids[:-1]])
        own_N = torch.tensor(episode.action_mask[1:]).nonzero()[:, 0]
        chosen_N = torch.tensor(episode.ids[1:])[own_N]
        ours_NV, theirs_NV = (read(ids_1T)[0].float().cpu()[own_N] for read in (policy, model))
        difference = float((ours_NV - theirs_NV).abs().max())
        worst = math.nan if math.isnan(difference + worst) else max(worst, difference)
        best_N2 = ours_NV.topk(2, dim=-1).values
        close_N = best_N2[:, 0] - best_N2[:, 1] <= tolerance
        other += int(((theirs_NV.argmax(dim=-1) != chosen_N) & ~close_N).sum())
        ties += int(close_N.sum())
        tokens += len(own_N)
    return ParityReport(len(greedy), tokens, tolerance, worst, other, ties)


@dataclass(frozen=True, slots=True)
class GGUFParityReport:
    """How closely a GGUF file in llama.cpp matches the model.

    Attributes:
        kind: how its matrices are stored.
        prompts: number of prompts that were continued greedily, given as token ids.
        tokens: number of tokens that llama.cpp generated.
        same_tokens: share of these that the model also finds most likely, after the same tokens.
        logprob_difference: mean of |Δ log p| over these.
    """

    kind: GGUFType
    prompts: int
    tokens: int
    same_tokens: float
    logprob_difference: float

    @property
    def passed(self) -> bool:
        """Whether it generates the same after the same token ids."""
        near = self.logprob_difference <= MAX_LOGPROB_DIFFERENCE[self.kind]
        return self.tokens > 0 and self.same_tokens >= MIN_SAME_TOKENS and near

    def body(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        bounds = {"min": MIN_SAME_TOKENS, "max_logprob_difference": MAX_LOGPROB_DIFFERENCE[self.kind]}
        return {**asdict(self), **bounds, "pass": self.passed}


@torch.no_grad()
def gguf_parity(
    llama: LlamaCpp,
    kind: GGUFType,
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    most: int,
) -> GGUFParityReport:
    """Compare greedy continuations of token ids, so that only the weights can differ.

    Args:
        llama: has loaded the file.
        kind: how it stores matrices.
        model: the original model, in fp32 on the CPU.
        prompts: token ids, each up to the beginning of an assistant's turn.
        most: number of tokens per continuation.
    """
    same: list[bool] = []
    differences: list[float] = []
    for number, prompt in enumerate(prompts):
        report_progress("gguf", number, len(prompts), "greedy continuations")
        alike_here, apart = _greedy_agreement(llama, model, prompt, most)
        same += alike_here
        differences += apart
    share = sum(same) / len(same) if same else math.nan
    mean = math.fsum(differences) / len(differences) if differences else math.nan
    return GGUFParityReport(kind, len(prompts), len(same), share, mean)


@torch.no_grad()
def _greedy_agreement(
    llama: LlamaCpp, model: PreTrainedModel, prompt: Sequence[int], most: int
) -> tuple[list[bool], list[float]]:
    """Check whether the model finds each greedy token of llama.cpp most likely too, after the same tokens.

    Args:
        llama: has loaded the file.
        model: in fp32 on the CPU.
        prompt: token ids, up to the beginning of an assistant's turn.
        most: number of tokens to generate.

    Returns:
        A bool for each token, and |Δ log p| in nats for those whose log-probability llama.cpp reports.
    """
    said = llama.greedy(prompt, most)
    logprobs_SV = _logprobs_after(model, torch.tensor([[*prompt, *said.ids]]), len(said.ids))
    ids_S = torch.tensor(said.ids)
    same: list[bool] = (logprobs_SV.argmax(dim=-1) == ids_S).tolist()
    ours = logprobs_SV.gather(1, ids_S[:, None])[:, 0].tolist()
    apart = (abs(one - other) for one, other in zip(ours, said.logprobs, strict=True))
    return same, [one for one in apart if not math.isnan(one)]


def _logprobs_after(model: PreTrainedModel, ids_1T: Tensor, count: int) -> Tensor:
    """Compute log-probabilities (count, V) for the positions of the last `count` tokens."""
    logits_1TV = model(input_ids=ids_1T).logits
    return torch.log_softmax(logits_1TV[0, -count - 1 : -1].float(), dim=-1)
