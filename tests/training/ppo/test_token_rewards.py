"""Rewards per token and the estimates of the KL."""

from __future__ import annotations

import math

import pytest
import torch

from rc1_lib.training.ppo.token_rewards import last_own, token_rewards
from rc1_lib.training.updates.kl import kl_k1, kl_k3


def test_the_score_comes_with_the_last_own_token_and_the_kl_costs_at_each() -> None:
    own = torch.tensor([[False, True, False, True, False], [False, True, True, False, False]])
    kl = torch.tensor([[math.nan, 0.5, math.nan, -0.1, 9.0], [9.0, 0.2, 0.0, 9.0, 9.0]])
    rewards = token_rewards(torch.tensor([1.0, -0.5]), kl, own, kl_coef=0.1)
    torch.testing.assert_close(rewards, torch.tensor([[0, -0.05, 0, 1.01, 0], [0, -0.02, -0.5, 0, 0]]))


def test_without_the_kl_only_scores_are_left() -> None:
    own = torch.tensor([[False, True, True]])
    rewards = token_rewards(torch.tensor([0.7]), torch.tensor([[1.0, 2.0, 3.0]]), own, kl_coef=0.0)
    torch.testing.assert_close(rewards, torch.tensor([[0, 0, 0.7]]))


def test_the_last_own_token_is_found_before_observations_and_padding() -> None:
    own = torch.tensor([[False, True, False, True, False, False], [False, True, False, False, False, False]])
    assert last_own(own).tolist() == [3, 1]


def test_k1_and_k3_of_a_token_by_hand() -> None:
    p, q = torch.tensor([math.log(0.5)]), torch.tensor([math.log(0.25)])
    assert float(kl_k1(p, q)) == pytest.approx(math.log(2))
    assert float(kl_k3(p, q)) == pytest.approx(0.5 - 1 + math.log(2))


def test_both_estimates_average_to_the_kl_and_k3_is_never_negative() -> None:
    """Weighted by the probabilities of p, their mean is the KL itself."""
    p = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    q = torch.tensor([0.3, 0.3, 0.4], dtype=torch.float64)
    exact = float((p * (p / q).log()).sum())
    k1, k3 = kl_k1(p.log(), q.log()), kl_k3(p.log(), q.log())
    assert float((p * k1).sum()) == pytest.approx(exact)
    assert float((p * k3).sum()) == pytest.approx(exact)
    assert bool((k3 >= 0).all()) and not bool((k1 >= 0).all())


def test_k3_of_nearly_equal_policies_does_not_drown_in_rounding() -> None:
    gap = 1e-3
    k3 = kl_k3(torch.tensor([-5.0]), torch.tensor([-5.0 + gap]))
    assert float(k3) == pytest.approx(gap**2 / 2, rel=0.01)
