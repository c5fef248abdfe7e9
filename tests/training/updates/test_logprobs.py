"""The precision of log-probabilities, entropies and values."""

from __future__ import annotations

import math

import pytest
import torch

from rc1_lib.training.policy import ValueHead
from rc1_lib.training.updates.forward import entropy, log_distribution, token_logprobs


def test_log_probabilities_are_those_at_the_temperature() -> None:
    """Logits 0 and log 3 at temperature 0.5 are 0 and log 9: probabilities 0.1 and 0.9."""
    logits = torch.tensor([[0.0, math.log(3)], [0.0, math.log(3)]])
    done = token_logprobs(logits, torch.tensor([0, 1]), 0.5)
    torch.testing.assert_close(done, torch.tensor([math.log(0.1), math.log(0.9)]))


def test_bf16_logits_are_normalized_in_fp32() -> None:
    logits = torch.randn(3, 500, generator=torch.Generator().manual_seed(0)).bfloat16()
    done = log_distribution(logits, 1.0)
    assert done.dtype == torch.float32
    torch.testing.assert_close(done.double(), torch.log_softmax(logits.double(), -1), atol=1e-5, rtol=0)


def test_entropy_of_four_equal_tokens_is_log_4() -> None:
    assert float(entropy(log_distribution(torch.zeros(1, 4), 1.0))) == pytest.approx(math.log(4))


def test_new_value_head_returns_0_and_its_last_layer_has_a_gradient() -> None:
    head = ValueHead(8)
    values = head(torch.randn(2, 3, 8))
    assert values.shape == (2, 3) and bool((values == 0).all())
    values.sum().backward()
    assert head.outer.weight.grad is not None and bool((head.outer.weight.grad != 0).any())


def test_values_are_fp32_in_a_bf16_model() -> None:
    head = ValueHead(8)
    torch.nn.init.normal_(head.outer.weight)
    hidden = torch.randn(4, 8).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        values = head(hidden)
    assert values.dtype == torch.float32
    torch.testing.assert_close(values, head(hidden.float()))
