"""Ratios, clipping and normalisers against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rc1_lib.training.ppo.losses import policy_loss, value_loss
from rc1_lib.training.updates.losses import clipped_surrogate, entropy_loss

DOUBLE = torch.float64


def test_the_policy_loss_clips_only_where_the_ratio_went_the_advantages_way() -> None:
    """Ratios 1.5, 1.5, 0.5, 0.5, 1.1 with clip 0.2 and advantages 2, -2, 2, -2, 1.

    min(3, 2.4) = 2.4, min(-3, -2.4) = -3, min(1, 1.6) = 1, min(-1, -1.6) = -1.6, 1.1; together -0.1, over 4: 0.025.
    """
    ratios = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1], dtype=DOUBLE)
    old = torch.full((5,), -1.0, dtype=DOUBLE)
    logprobs = (old + ratios.log()).requires_grad_()
    advantages = torch.tensor([2.0, -2, 2, -2, 1], dtype=DOUBLE)
    done = policy_loss(logprobs, old, advantages, clip=0.2, normaliser=4)
    assert float(done.loss.detach()) == pytest.approx(0.1 / 4)
    assert float(done.sums["ratio"]) == pytest.approx(5.1)
    assert float(done.sums["ratio_squared"]) == pytest.approx(2.25 + 2.25 + 0.25 + 0.25 + 1.21)
    assert float(done.sums["clipped"]) == 2
    assert float(done.sums["approxkl"]) == pytest.approx(sum(r - 1 - math.log(r) for r in (1.5, 1.5, 0.5, 0.5, 1.1)))
    assert float(done.sums["gap"]) == pytest.approx(sum(abs(math.log(r)) for r in (1.5, 1.5, 0.5, 0.5, 1.1)))
    (gradient,) = torch.autograd.grad(done.loss, logprobs)
    expected = torch.tensor([0, 3.0, -1.0, 0, -1.1], dtype=DOUBLE) / 4
    torch.testing.assert_close(gradient, expected)


def test_the_value_loss_takes_the_worse_of_the_value_and_the_clipped_one() -> None:
    """Old value 1, clip 0.5, returns 2, 2, 0; values 3, 1.2, 0.

    3 is kept to 1.5: squares 1 and 0.25, the worse is 1. 1.2 is within: 0.64. 0 is kept to 0.5: 0 and 0.25, so 0.25.
    """
    values = torch.tensor([3.0, 1.2, 0.0], dtype=DOUBLE, requires_grad=True)
    returns = torch.tensor([2.0, 2.0, 0.0], dtype=DOUBLE)
    done = value_loss(values, torch.ones(3, dtype=DOUBLE), returns, clip=0.5, normaliser=10)
    assert float(done.loss.detach()) == pytest.approx(0.5 * (1 + 0.64 + 0.25) / 10)
    assert float(done.sums["value_clipped"]) == 1
    (gradient,) = torch.autograd.grad(done.loss, values)
    torch.testing.assert_close(gradient, torch.tensor([0.1, -0.08, 0], dtype=DOUBLE))


def test_an_infinite_value_clip_is_the_plain_squared_error() -> None:
    values = torch.tensor([3.0, -4.0])
    done = value_loss(values, torch.zeros(2), torch.tensor([1.0, 1.0]), clip=math.inf, normaliser=1)
    assert float(done.loss.detach()) == pytest.approx(0.5 * (4 + 25))
    assert float(done.sums["value_clipped"]) == 0


def test_the_entropy_loss_is_minus_the_entropy_per_normaliser() -> None:
    done = entropy_loss(torch.tensor([0.5, 1.5]), normaliser=8)
    assert float(done.loss.detach()) == pytest.approx(-0.25)
    assert float(done.sums["entropy"]) == pytest.approx(2.0)


def test_losses_of_parts_add_up_to_the_loss_of_the_whole() -> None:
    torch.manual_seed(0)
    logprobs, old, advantages = torch.randn(3, 10, dtype=DOUBLE)
    whole = policy_loss(logprobs, old, advantages, clip=0.2, normaliser=10).loss
    parts = [
        policy_loss(logprobs[cut], old[cut], advantages[cut], clip=0.2, normaliser=10).loss
        for cut in (slice(0, 1), slice(1, 7), slice(7, 10))
    ]
    torch.testing.assert_close(sum(parts), whole)


def test_the_ratio_may_go_further_up_than_down_where_the_bounds_differ() -> None:
    """Ratio 1.25 is within 0.28 above 1 and beyond 0.2; 0.75 is beyond 0.2 below it. Advantages 1 and -1."""
    old = torch.zeros(2, dtype=DOUBLE)
    logprobs, advantages = torch.tensor([1.25, 0.75], dtype=DOUBLE).log(), torch.tensor([1.0, -1.0], dtype=DOUBLE)
    gains = clipped_surrogate(logprobs, old, advantages, low=0.2, high=0.28).gains
    torch.testing.assert_close(gains, torch.tensor([1.25, -0.8], dtype=DOUBLE))
