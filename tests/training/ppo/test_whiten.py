"""Whitening over a mask."""

from __future__ import annotations

import torch

from rc1_lib.training.ppo.whiten import whiten


def test_only_masked_numbers_count_and_only_they_are_moved() -> None:
    """1, 3 and 8 have mean 4 and variance (9 + 1 + 16) / 3."""
    numbers = torch.tensor([[1.0, 100.0, 3.0], [8.0, -50.0, 7.0]], dtype=torch.float64)
    mask = torch.tensor([[True, False, True], [True, False, False]])
    spread = (26 / 3) ** 0.5
    expected = torch.tensor([[-3 / spread, 0, -1 / spread], [4 / spread, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(whiten(numbers, mask), expected)


def test_equal_numbers_become_zeros_instead_of_noise() -> None:
    numbers = torch.full((2, 3), 0.1)
    mask = torch.tensor([[True, True, True], [True, False, False]])
    torch.testing.assert_close(whiten(numbers, mask), torch.zeros(2, 3), atol=1e-3, rtol=0)


def test_a_single_token_has_no_advantage_over_the_others() -> None:
    assert whiten(torch.tensor([[5.0]]), torch.tensor([[True]])).tolist() == [[0.0]]
