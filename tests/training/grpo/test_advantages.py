"""Group-relative advantages against numbers computed by hand."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from rc1_lib.training.engines.torch_grpo import group_advantages

DOUBLE = torch.float64
SCORES = torch.tensor([1.0, 3.0, 4.0, 4.0, 2.0, 5.0], dtype=DOUBLE)
GROUPS = torch.tensor([0, 0, 1, 1, 1, 2])
"""Means 2, 10/3 and 5; squared distances 2, 8/3 and 0; standard deviations sqrt 2, sqrt 4/3 and none."""


def advantages(scale: Literal["group", "batch", "none"]) -> torch.Tensor:
    return group_advantages(SCORES, GROUPS, scale).advantages


def test_unscaled_advantage_is_the_distance_from_the_group_mean() -> None:
    expected = torch.tensor([-1, 1, 2 / 3, 2 / 3, -4 / 3, 0], dtype=DOUBLE)
    torch.testing.assert_close(advantages("none"), expected)


def test_advantages_are_scaled_by_the_deviation_of_group_or_batch() -> None:
    by_group = torch.tensor([2**0.5, 2**0.5, *[(4 / 3) ** 0.5] * 3, 0], dtype=DOUBLE)
    torch.testing.assert_close(advantages("group"), advantages("none") / (by_group + 1e-4))
    # Squared distances from 19/6 add up to 65/6, over 5.
    torch.testing.assert_close(advantages("batch"), advantages("none") / ((13 / 6) ** 0.5 + 1e-4))


def test_equal_scores_and_single_rollouts_have_no_advantage_and_are_counted() -> None:
    scores = torch.tensor([0.3, 0.3, 0.3, 0.7, 0.1, 0.9])
    found = group_advantages(scores, torch.tensor([0, 0, 0, 1, 2, 2]), "group")
    assert found.advantages[:4].abs().max() < 1e-3
    assert found.flat == pytest.approx(2 / 3)
