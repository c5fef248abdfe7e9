"""Advantages against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch

from rc1_lib.training.ppo.gae import generalised_advantages


def as_rows(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_an_observation_between_two_own_tokens_is_skipped() -> None:
    """Own tokens at 1, 2 and 4; 3 is an observation, 0 the prompt; what stands at those must not be read.

    deltas from the end: 1 - 0.3 = 0.7; 0 + 0.5 * 0.3 - 0.2 = -0.05; 0.1 + 0.5 * 0.2 - 0.4 = -0.2.
    gamma * lam = 0.4: advantages 0.7; -0.05 + 0.28 = 0.23; -0.2 + 0.092 = -0.108.
    """
    own = torch.tensor([[False, True, True, False, True]])
    rewards = as_rows([9.0, 0.1, 0.0, 9.0, 1.0])
    values = as_rows([9.0, 0.4, 0.2, 9.0, 0.3])
    advantages, returns = generalised_advantages(rewards, values, own, gamma=0.5, lam=0.8)
    torch.testing.assert_close(advantages, as_rows([0, -0.108, 0.23, 0, 0.7]))
    torch.testing.assert_close(returns, as_rows([0, 0.292, 0.43, 0, 1.0]))


def test_rows_do_not_reach_into_each_other_and_padding_is_not_read() -> None:
    own = torch.tensor([[False, True, True], [False, True, False]])
    rewards = as_rows([0, 0, 1.0], [0, 0.5, 7.0])
    values = as_rows([0, 0.25, 0.5], [0, 0.1, 7.0])
    advantages, _ = generalised_advantages(rewards, values, own, gamma=1.0, lam=0.0)
    torch.testing.assert_close(advantages, as_rows([0, 0.25, 0.5], [0, 0.4, 0]))


def test_with_lambda_1_returns_are_discounted_sums_of_rewards() -> None:
    own = torch.tensor([[False, True, False, True, True]])
    rewards = as_rows([0, 1.0, 0, 2.0, 4.0])
    values = as_rows([0, 0.3, 0, -0.7, 0.9])
    _, returns = generalised_advantages(rewards, values, own, gamma=0.5, lam=1.0)
    torch.testing.assert_close(returns, as_rows([0, 1 + 0.5 * 2 + 0.25 * 4, 0, 2 + 0.5 * 4, 4.0]))


@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
def test_it_equals_the_definition_as_a_sum_over_what_follows(lam: float) -> None:
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
