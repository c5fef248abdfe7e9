"""Nested states survive a checkpoint, and equal states have equal bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.process import begin_step, restore_rng, rng_state


def saved(nested: dict[str, Any], folder: Path) -> Path:
    return save_checkpoint(CheckpointState({}, {"step": 1}, nested), folder, folder / "ledger.jsonl")


def round_trip(part: Any, folder: Path) -> Any:
    return load_checkpoint(saved({"part": part}, folder)).part("part")


@pytest.mark.parametrize(
    "leaf",
    [None, True, 2**127 + 1, 0.1 + 0.2, (1, (2.5, None)), {"a": {"b": [1]}}, {3: "c"}],
)
def test_plain_data_survive_a_round_trip(leaf: object, tmp_path: Path) -> None:
    back = round_trip(leaf, tmp_path)
    assert back == leaf
    assert type(back) is type(leaf)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.uint8, torch.bool])
def test_tensors_keep_their_dtype_and_bits(dtype: torch.dtype, tmp_path: Path) -> None:
    tensor = torch.tensor([0.0, 1.0, 1.0]).to(dtype)
    back = round_trip({"a": [tensor, {"b": tensor * 2}]}, tmp_path)
    assert back["a"][0].dtype == dtype
    assert torch.equal(back["a"][0], tensor)
    assert torch.equal(back["a"][1]["b"], tensor * 2)


def test_equal_states_have_equal_bytes_with_or_without_shared_objects(tmp_path: Path) -> None:
    name, whole = "exp_avg", torch.arange(4.0)
    shared = {"a": {name: whole}, "b": {name: whole, "of": [name, name]}}
    joined = "".join(["exp_", "avg"])  # equal, and another object
    apart = {"a": {"exp_avg": whole.clone()}, "b": {joined: torch.arange(8.0)[:4], "of": [joined, "exp_avg"]}}
    one, other = (saved(state, tmp_path / place) for place, state in (("one", shared), ("other", apart)))
    again = saved(load_checkpoint(one).nested, tmp_path / "again")
    assert len({(path / "nested.pt").read_bytes() for path in (one, other, again)}) == 1


def test_state_that_would_run_code_when_read_is_rejected_by_name(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"part\.lr_lambdas\.0 .*function"):
        round_trip({"lr_lambdas": [lambda step: step]}, tmp_path)


def test_restored_random_generators_continue_their_sequences(tmp_path: Path) -> None:
    def draw() -> list[float]:
        begin_step(3, 7)
        return [random.gauss(), np.random.randn(), float(torch.rand(1))]

    draw()  # so that the second number of a Gaussian pair is cached
    state = round_trip(rng_state(), tmp_path)
    first = [draw(), draw()]
    assert draw() not in first
    restore_rng(state)
    assert [draw(), draw()] == first
