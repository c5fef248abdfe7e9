"""Estimates of the KL between two policies from tokens that one of them sampled."""

from __future__ import annotations

import torch
from torch import Tensor


def kl_k1(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """The plain estimate log p - log q of KL(p, q) from a token sampled from p: unbiased, may be negative.

    Source: Schulman, "Approximating KL Divergence" (2020).

    Args:
        logprobs: of sampled tokens under the policy p, any shape.
        ref_logprobs: of the same tokens under the reference q, same shape.
    """
    return logprobs - ref_logprobs


def kl_k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """The estimate (q/p - 1) - log(q/p) of KL(p, q) from a token sampled from p: unbiased and never negative.

    Source: Schulman, "Approximating KL Divergence" (2020). Shapes as in `kl_k1`.
    """
    log_ratio = ref_logprobs - logprobs
    return torch.expm1(log_ratio) - log_ratio
