"""The diff of two checkpoints reports all differences and only those."""

from __future__ import annotations

import torch

from rc1_lib.training.checkpoint.state import CheckpointState, Difference, diff_checkpoints


def state_with(value: torch.Tensor, **values: object) -> CheckpointState:
    return CheckpointState({"adapter": {"w": value}}, {"step": 1, **values})


def test_equal_states_have_no_difference() -> None:
    nan = torch.tensor([float("nan"), 0.0])
    assert diff_checkpoints(state_with(nan), state_with(nan.clone()), exact=True) == []
    assert diff_checkpoints(state_with(nan), state_with(nan.clone()), exact=False) == []


def test_different_numbers_are_counted_with_their_largest_gap() -> None:
    a, b = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.25, 2.5])
    expected = [Difference("adapter/w", "2 of 3 numbers differ, by 0.5 at most")]
    assert diff_checkpoints(state_with(a), state_with(b), exact=True) == expected
    assert diff_checkpoints(state_with(a), state_with(b), exact=False) == expected


def test_only_an_exact_diff_reports_dtypes_and_signed_zeros() -> None:
    zero, minus = torch.tensor([0.0]), torch.tensor([-0.0])
    assert diff_checkpoints(state_with(zero), state_with(minus), exact=False) == []
    assert diff_checkpoints(state_with(zero), state_with(minus), exact=True) == [
        Difference("adapter/w", "equal numbers, other bits")
    ]
    assert diff_checkpoints(state_with(zero), state_with(zero.half()), exact=False) == []
    [found] = diff_checkpoints(state_with(zero), state_with(zero.half()), exact=True)
    assert found.what == "dtype torch.float32 and torch.float16"


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


def test_lists_are_compared_by_entry() -> None:
    value = torch.zeros(1)
    groups = [{"lr": 0.1, "eps": 1e-8}, {"lr": 0.1, "eps": 1e-8}]
    a = state_with(value, groups=groups, ids=["a", "b", "c"], seen=[1, 2], same=[1, 2])
    b = state_with(value, groups=[groups[0], {"lr": 0.2, "eps": 1e-8}], ids=["a", "x"], seen=[1, 3], same=[1, 2])
    assert [(found.where, found.what) for found in diff_checkpoints(a, b, exact=True)] == [
        ("state.json/groups[1].lr", "0.1 and 0.2"),
        ("state.json/ids", "3 and 2 entries; 1 of 2 differ, first at [1]: 'b' and 'x'"),
        ("state.json/seen", "1 of 2 differ, first at [1]: 2 and 3"),
    ]
