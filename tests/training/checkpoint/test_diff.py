"""The diff of two checkpoints reports all differences and only those."""

from __future__ import annotations

import torch

from rc1_lib.training.checkpoint.state import CheckpointState, Difference, diff_checkpoints


def state_with(value: torch.Tensor, **values: object) -> CheckpointState:
    return CheckpointState({"adapter": {"w": value}}, {"step": 1, **values})


def test_different_numbers_are_counted_with_their_largest_gap() -> None:
    a, b = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.25, 2.5])
    expected = [Difference("adapter/w", "2 of 3 numbers differ, by 0.5 at most")]
    assert diff_checkpoints(state_with(a), state_with(b), exact=True) == expected
    assert diff_checkpoints(state_with(a), state_with(b), exact=False) == expected


def test_different_shapes_groups_names_and_values_are_reported() -> None:
    a = CheckpointState(
        {"adapter": {"w": torch.zeros(2), "x": torch.zeros(1)}, "old": {}}, {"kl": {"coef": 0.1}, "t": 1}
    )
    b = CheckpointState({"adapter": {"w": torch.zeros(3)}, "value_head": {}}, {"kl": {"coef": 0.2}, "t": True, "u": 1})
    assert [(found.where, found.what) for found in diff_checkpoints(a, b, exact=False)] == [
        ("state.json/kl.coef", "0.1 and 0.2"),
        ("state.json/t", "1 and True"),
        ("state.json/u", "only in the second"),
        ("adapter/w", "shape (2,) and (3,)"),
        ("adapter/x", "only in the first"),
        ("old", "only in the first"),
        ("value_head", "only in the second"),
    ]
