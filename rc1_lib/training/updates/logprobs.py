"""Log-probabilities and entropy of tokens, in at least fp32."""

from __future__ import annotations

import torch
from torch import Tensor


def token_logprobs(logits_NV: Tensor, tokens_N: Tensor, temperature: float) -> Tensor:
    """Log-probabilities (N,) of tokens under the tempered distribution.

    Args:
        logits_NV: (N, V), any floating type.
        tokens_N: int64 (N,).
        temperature: above 0.
    """
    return log_distribution(logits_NV, temperature).gather(1, tokens_N[:, None])[:, 0]


def log_distribution(logits_NV: Tensor, temperature: float) -> Tensor:
    """Log-probabilities (N, V) of all tokens; half precision is widened to fp32 before anything is summed."""
    wide_NV = logits_NV.float() if logits_NV.dtype in (torch.bfloat16, torch.float16) else logits_NV
    return torch.log_softmax(wide_NV if temperature == 1 else wide_NV / temperature, dim=-1)


def entropy(log_distribution_NV: Tensor) -> Tensor:
    """Entropies (N,) in nats of distributions given as log-probabilities (N, V), none of them minus infinity."""
    return -(log_distribution_NV.exp() * log_distribution_NV).sum(dim=-1)
