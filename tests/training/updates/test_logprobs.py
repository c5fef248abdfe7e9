"""The precision of log-probabilities, entropies and values."""

from __future__ import annotations

import torch

from rc1_lib.training.policy import ValueHead
from rc1_lib.training.updates.forward import log_distribution


def test_bf16_logits_are_normalized_in_fp32() -> None:
    logits = torch.randn(3, 500, generator=torch.Generator().manual_seed(0)).bfloat16()
    done = log_distribution(logits, 1.0)
    assert done.dtype == torch.float32
    torch.testing.assert_close(done.double(), torch.log_softmax(logits.double(), -1), atol=1e-5, rtol=0)


def test_values_are_fp32_in_a_bf16_model() -> None:
    head = ValueHead(8)
    torch.nn.init.normal_(head.outer.weight)
    hidden = torch.randn(4, 8).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        values = head(hidden)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, head(hidden.float()))
