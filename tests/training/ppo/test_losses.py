"""Rewards, advantages, whitening and losses against numbers computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from rc1_lib.training.updates.losses import (
    clipped_surrogate,
    entropy_loss,
    generalised_advantages,
    kl_k1,
    kl_k3,
    last_action,
    policy_loss,
    token_rewards,
    value_loss,
    whiten,
)


def test_score_is_paid_at_the_last_own_token_and_kl_at_every_one() -> None:
    own = torch.tensor([[False, True, False, True, False], [False, True, True, False, False]])
    kl = torch.tensor([[math.nan, 0.5, math.nan, -0.1, 9.0], [9.0, 0.2, 0.0, 9.0, 9.0]])
    rewards = token_rewards(torch.tensor([1.0, -0.5]), kl, own, kl_coef=0.1)
    torch.testing.assert_close(rewards, torch.tensor([[0, -0.05, 0, 1.01, 0], [0, -0.02, -0.5, 0, 0]]))


def test_rewards_are_only_scores_at_a_kl_coefficient_of_0() -> None:
    own = torch.tensor([[False, True, True]])
    rewards = token_rewards(torch.tensor([0.7]), torch.tensor([[1.0, 2.0, 3.0]]), own, kl_coef=0.0)
    torch.testing.assert_close(rewards, torch.tensor([[0, 0, 0.7]]))


def test_last_own_token_is_found_before_observations_and_padding() -> None:
    own = torch.tensor([[False, True, False, True, False, False], [False, True, False, False, False, False]])
    assert last_action(own).tolist() == [3, 1]


def test_k1_and_k3_of_a_token_equal_numbers_by_hand() -> None:
    p, q = torch.tensor([math.log(0.5)]), torch.tensor([math.log(0.25)])
    assert float(kl_k1(p, q)) == pytest.approx(math.log(2))
    assert float(kl_k3(p, q)) == pytest.approx(0.5 - 1 + math.log(2))


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

    deltas from the end: 1 - 0.3 = 0.7; 0 + 0.5 * 0.3 - 0.2 = -0.05; 0.1 + 0.5 * 0.2 - 0.4 = -0.2.
    gamma * lam = 0.4: advantages 0.7; -0.05 + 0.28 = 0.23; -0.2 + 0.092 = -0.108.
    """
    own = torch.tensor([[False, True, True, False, True]])
    rewards = as_rows([9.0, 0.1, 0.0, 9.0, 1.0])
    values = as_rows([9.0, 0.4, 0.2, 9.0, 0.3])
    advantages, returns = generalised_advantages(rewards, values, own, gamma=0.5, lam=0.8)
    torch.testing.assert_close(advantages, as_rows([0, -0.108, 0.23, 0, 0.7]))
    torch.testing.assert_close(returns, as_rows([0, 0.292, 0.43, 0, 1.0]))


def test_advantages_are_separate_by_row_and_ignore_padding() -> None:
    own = torch.tensor([[False, True, True], [False, True, False]])
    rewards = as_rows([0, 0, 1.0], [0, 0.5, 7.0])
    values = as_rows([0, 0.25, 0.5], [0, 0.1, 7.0])
    advantages, _ = generalised_advantages(rewards, values, own, gamma=1.0, lam=0.0)
    torch.testing.assert_close(advantages, as_rows([0, 0.25, 0.5], [0, 0.4, 0]))


def test_returns_at_lambda_1_are_discounted_sums_of_rewards() -> None:
    own = torch.tensor([[False, True, False, True, True]])
    rewards = as_rows([0, 1.0, 0, 2.0, 4.0])
    values = as_rows([0, 0.3, 0, -0.7, 0.9])
    _, returns = generalised_advantages(rewards, values, own, gamma=0.5, lam=1.0)
    torch.testing.assert_close(returns, as_rows([0, 1 + 0.5 * 2 + 0.25 * 4, 0, 2 + 0.5 * 4, 4.0]))


@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
def test_advantages_equal_the_definition_as_a_sum_of_deltas(lam: float) -> None:
    torch.manual_seed(0)
    own = torch.rand(5, 12) < 0.5
    own[:, 3] = True
    rewards, values = torch.randn(2, 5, 12, dtype=torch.float64)
    advantages, _ = generalised_advantages(rewards, values, own, gamma=0.9, lam=lam)
    for row in range(5):
        steps = own[row].nonzero()[:, 0].tolist()
        v = [float(values[row, step]) for step in steps] + [0.0]
        deltas = [float(rewards[row, step]) + 0.9 * v[k + 1] - v[k] for k, step in enumerate(steps)]
        for k, step in enumerate(steps):
            expected = sum((0.9 * lam) ** j * delta for j, delta in enumerate(deltas[k:]))
            assert float(advantages[row, step]) == pytest.approx(expected, abs=1e-12)


def test_whitening_uses_and_changes_only_masked_numbers() -> None:
    """1, 3 and 8 have mean 4 and variance (9 + 1 + 16) / 3."""
    numbers = torch.tensor([[1.0, 100.0, 3.0], [8.0, -50.0, 7.0]], dtype=torch.float64)
    mask = torch.tensor([[True, False, True], [True, False, False]])
    spread = (26 / 3) ** 0.5
    expected = torch.tensor([[-3 / spread, 0, -1 / spread], [4 / spread, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(whiten(numbers, mask), expected)


def test_whitening_turns_equal_numbers_into_zeros() -> None:
    numbers = torch.full((2, 3), 0.1)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    torch.testing.assert_close(whiten(numbers, mask), torch.zeros(2, 3), atol=1e-3, rtol=0)


def test_whitening_turns_a_single_number_into_zero() -> None:
    assert whiten(torch.tensor([[5.0]]), torch.tensor([[True]])).tolist() == [[0.0]]


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


def test_value_loss_uses_the_worse_of_the_value_and_the_clipped_value() -> None:
    """Old value 1, clip 0.5, returns 2, 2, 0; values 3, 1.2, 0.

    3 is clipped to 1.5: squares 1 and 0.25, the worse is 1. 1.2 is within: 0.64. 0 is clipped to 0.5: 0 and 0.25.
    """
    values = torch.tensor([3.0, 1.2, 0.0], dtype=DOUBLE, requires_grad=True)
    returns = torch.tensor([2.0, 2.0, 0.0], dtype=DOUBLE)
    done = value_loss(values, torch.ones(3, dtype=DOUBLE), returns, clip=0.5, normaliser=10)
    assert float(done.loss.detach()) == pytest.approx(0.5 * (1 + 0.64 + 0.25) / 10)
    assert float(done.sums["value_clipped"]) == 1
    (gradient,) = torch.autograd.grad(done.loss, values)
    torch.testing.assert_close(gradient, torch.tensor([0.1, -0.08, 0], dtype=DOUBLE))


def test_value_loss_with_an_infinite_clip_is_the_squared_error() -> None:
    values = torch.tensor([3.0, -4.0])
    done = value_loss(values, torch.zeros(2), torch.tensor([1.0, 1.0]), clip=math.inf, normaliser=1)
    assert float(done.loss.detach()) == pytest.approx(0.5 * (4 + 25))
    assert float(done.sums["value_clipped"]) == 0


def test_entropy_loss_is_the_negative_entropy_per_normaliser() -> None:
    done = entropy_loss(torch.tensor([0.5, 1.5]), normaliser=8)
    assert float(done.loss.detach()) == pytest.approx(-0.25)
    assert float(done.sums["entropy"]) == pytest.approx(2.0)


def test_losses_of_parts_add_up_to_the_whole_loss() -> None:
    torch.manual_seed(0)
    logprobs, old, advantages = torch.randn(3, 10, dtype=DOUBLE)
    whole = policy_loss(logprobs, old, advantages, clip=0.2, normaliser=10).loss
    parts = [
        policy_loss(logprobs[cut], old[cut], advantages[cut], clip=0.2, normaliser=10).loss
        for cut in (slice(0, 1), slice(1, 7), slice(7, 10))
    ]
    torch.testing.assert_close(sum(parts), whole)


def test_surrogate_supports_a_higher_upper_clip() -> None:
    """Ratio 1.25 is within 1.28 and stays; 0.75 is below 0.8 and is clipped. Advantages are 1 and -1."""
    old = torch.zeros(2, dtype=DOUBLE)
    logprobs, advantages = torch.tensor([1.25, 0.75], dtype=DOUBLE).log(), torch.tensor([1.0, -1.0], dtype=DOUBLE)
    gains = clipped_surrogate(logprobs, old, advantages, low=0.2, high=0.28).gains
    torch.testing.assert_close(gains, torch.tensor([1.25, -0.8], dtype=DOUBLE))
