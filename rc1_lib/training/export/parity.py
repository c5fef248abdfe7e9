"""Whether what was written is the policy.

A model that is read again is compared by its logits and greedy tokens on episodes; a GGUF file by what llama.cpp says
with it and PyTorch with the model that it was written from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.device import Precision
from rc1_lib.training.export.gguf_file import GGUFType
from rc1_lib.training.export.llama_cpp import LlamaCpp, comparable, composes
from rc1_lib.training.rollout.trajectory import Trajectory

Logits = Callable[[Tensor], Tensor]
"""Token ids (1, T) to logits (1, T, V)."""

TOLERANCE = {Precision.FP32: 1e-3, Precision.BF16: 0.5, Precision.FP16: 0.1}
"""How far a logit may be off. Adding an adapter into the weights rounds otherwise than adding what it gives: in fp32
by some 1e-5 of a logit, in 16 bits by what their mantissa leaves of logits of a few tens."""
MIN_SAME_TOKENS = 0.99
MAX_LOGPROB_DIFFERENCE = {GGUFType.F32: 0.001, GGUFType.F16: 0.002, GGUFType.Q8_0: 0.02}
"""Of a said token, on average: some fifteen times what was found. llama.cpp keeps keys and values in fp16 even where
weights are in fp32, and Q8_0 rounds every weight."""


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
        """Whether the model is the policy; a NaN is none, and without a token nothing was compared."""
        return self.tokens > 0 and self.logit_difference <= self.tolerance and not self.other_tokens

    def body(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "pass": self.passed}


@torch.no_grad()
def parity(policy: Logits, model: Logits, greedy: Sequence[Trajectory], precision: Precision) -> ParityReport:
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


@dataclass(frozen=True, slots=True)
class GGUFParityReport:
    """How like a model what llama.cpp reads is.

    Attributes:
        kind: how its matrices are stored.
        prompts: that were continued greedily, given as token ids.
        tokens: that llama.cpp said after them.
        same_tokens: share of these that the model finds likeliest too, after the same tokens.
        logprob_difference: mean of |Δ log p| over these.
        texts: that both tokenised.
        different_texts: those that became other tokens.
        composed: whether they were composed first (NFC), as the tokenizer does and llama.cpp does not.
    """

    kind: GGUFType
    prompts: int
    tokens: int
    same_tokens: float
    logprob_difference: float
    texts: int
    different_texts: tuple[str, ...]
    composed: bool

    @property
    def tokens_passed(self) -> bool:
        """Whether it says the same after the same token ids."""
        near = self.logprob_difference <= MAX_LOGPROB_DIFFERENCE[self.kind]
        return self.tokens > 0 and self.same_tokens >= MIN_SAME_TOKENS and near

    @property
    def texts_passed(self) -> bool:
        """Whether it may be given texts."""
        return self.texts > 0 and not self.different_texts

    def body(self) -> dict[str, Any]:
        """As JSON."""
        bounds = {"min": MIN_SAME_TOKENS, "max_logprob_difference": MAX_LOGPROB_DIFFERENCE[self.kind]}
        return {**asdict(self), **bounds, "tokens_pass": self.tokens_passed, "texts_pass": self.texts_passed}


@torch.no_grad()
def gguf_parity(
    llama: LlamaCpp,
    kind: GGUFType,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[Sequence[int]],
    texts: Sequence[str],
    most: int,
) -> GGUFParityReport:
    """Compare on token ids, so that only the weights can differ, and apart from that how texts become tokens.

    Args:
        llama: holds the file.
        kind: how it stores matrices.
        model: what the file was written from, in fp32 on the CPU.
        tokenizer: of the model.
        prompts: token ids, each up to where a turn of the assistant begins.
        texts: any.
        most: tokens of a continuation.
    """
    same: list[bool] = []
    differences: list[float] = []
    for number, prompt in enumerate(prompts):
        report_progress("gguf", number, len(prompts), "greedy continuations")
        alike_here, apart = greedy_agreement(llama, model, prompt, most)
        same += alike_here
        differences += apart
    encode = cast(Any, tokenizer).encode
    given = comparable(tokenizer, texts)
    cut = zip(given, llama.token_ids(given), strict=True)
    different = tuple(text for text, theirs in cut if theirs != encode(text, add_special_tokens=False))
    share = sum(same) / len(same) if same else math.nan
    mean = math.fsum(differences) / len(differences) if differences else math.nan
    return GGUFParityReport(kind, len(prompts), len(same), share, mean, len(texts), different, composes(tokenizer))


@torch.no_grad()
def greedy_agreement(
    llama: LlamaCpp, model: PreTrainedModel, prompt: Sequence[int], most: int
) -> tuple[list[bool], list[float]]:
    """Whether the model finds each greedy token of llama.cpp likeliest too, after the same tokens.

    Args:
        llama: holds the file.
        model: in fp32 on the CPU.
        prompt: token ids, up to where a turn of the assistant begins.
        most: tokens of the continuation.

    Returns:
        One for each token; and |Δ log p| in nats for those whose log-probability llama.cpp reports.
    """
    said = llama.greedy(prompt, most)
    logprobs_SV = _logprobs_after(model, torch.tensor([[*prompt, *said.ids]]), len(said.ids))
    ids_S = torch.tensor(said.ids)
    same: list[bool] = (logprobs_SV.argmax(dim=-1) == ids_S).tolist()
    ours = logprobs_SV.gather(1, ids_S[:, None])[:, 0].tolist()
    apart = (abs(one - other) for one, other in zip(ours, said.logprobs, strict=True))
    return same, [one for one in apart if not math.isnan(one)]


def _logprobs_after(model: PreTrainedModel, ids_1T: Tensor, count: int) -> Tensor:
    """Log-probabilities (count, V) of the last `count` tokens' places."""
    logits_1TV = model(input_ids=ids_1T).logits
    return torch.log_softmax(logits_1TV[0, -count - 1 : -1].float(), dim=-1)
