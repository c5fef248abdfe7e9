"""Rewards, advantages, whitening and losses against numbers computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rc1_lib.training.updates.losses import (
    generalised_advantages,
    kl_k1,
    kl_k3,
    policy_loss,
)


def test_k1_and_k3_average_to_the_kl_and_k3_is_never_negative() -> None:
    """Their means under p are the exact KL."""
    p = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    q = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    exact = float((p * (p / q).log()).sum())
    k1, k3 = kl_k1(p.log(), q.log()), kl_k3(p.log(), q.log())
    assert float((p * k1).sum()) == pytest.approx(exact)
    assert float((p * k3).sum()) == pytest.approx(exact)
    assert bool((k3 >= 0).all()) and not bool((k1 >= 0).all())


def test_k3_of_nearly_equal_policies_is_not_lost_in_rounding() -> None:
    gap = 1e-3
    k3 = kl_k3(torch.tensor([-5.0]), torch.tensor([-5.0 + gap]))
    assert float(k3) == pytest.approx(gap**2 / 2, rel=0.01)


def as_rows(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_advantages_skip_an_observation_between_own_tokens() -> None:
    """Own tokens are at 1, 2 and 4; 3 is an observation, 0 the prompt. Values at 0 and 3 must not be read.

    deltas from the end: 1 - 0.3 = 0.7; 0 + 0.3 - 0.2 = 0.1; 0.1 + 0.2 - 0.4 = -0.1.
    lam = 0.5: advantages 0.7; 0.1 + 0.35 = 0.45; -0.1 + 0.225 = 0.125.
    """
    own = torch.tensor([[False, True, True, False, True]])
    rewards = as_rows([9.0, 0.1, 0.0, 9.0, 1.0])
    values = as_rows([9.0, 0.4, 0.2, 9.0, 0.3])
    advantages, returns = generalised_advantages(rewards, values, own, lam=0.5)
    torch.testing.assert_close(advantages, as_rows([0, 0.125, 0.45, 0, 0.7]))
    torch.testing.assert_close(returns, as_rows([0, 0.525, 0.65, 0, 1.0]))


DOUBLE = torch.float64


def test_policy_loss_clips_only_ratios_that_moved_with_the_advantage() -> None:
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
