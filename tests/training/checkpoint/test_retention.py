"""Which checkpoints stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.training.checkpoint.load import load_checkpoint
from rc1_lib.training.checkpoint.names import steps
from rc1_lib.training.checkpoint.retention import keep_for_good, kept, prune
from rc1_lib.training.checkpoint.save import save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointError
from tests.training.checkpoint.states import state_of


def test_the_last_and_the_best_stay() -> None:
    scores = {1: 0.9, 2: 0.1, 3: 0.9, 4: 0.5}
    assert kept([1, 2, 3, 4, 5, 6], last=2, best=0, scores=scores) == {5, 6}
    assert kept([1, 2, 3, 4, 5, 6], last=2, best=1, scores=scores) == {3, 5, 6}
    assert kept([1, 2, 3, 4, 5, 6], last=1, best=3, scores=scores) == {1, 3, 4, 6}
    assert kept([2, 5], last=1, best=2, scores=scores) == {2, 5}


def test_pruning_removes_what_does_not_stay(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "ckpt", tmp_path / "reports/ledger.jsonl"
    for step in range(1, 6):
        save_checkpoint(state_of(step), folder, ledger)
    assert prune(folder, last=2, best=1, scores={1: 0.3, 2: 0.7}) == [1, 3]
    assert list(steps(folder)) == [2, 4, 5]
    assert prune(folder, last=2, best=1, scores={1: 0.3, 2: 0.7}) == []


def test_steps_beyond_latest_are_another_runs(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "ckpt", tmp_path / "reports/ledger.jsonl"
    for step in (1, 8, 9, 2, 3):
        save_checkpoint(state_of(step), folder, ledger)
    assert prune(folder, last=1, best=0, scores={}) == [1, 2]
    assert list(steps(folder)) == [3, 8, 9]


def test_best_only_ever_gains(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "ckpt", tmp_path / "reports/ledger.jsonl"
    first = keep_for_good(save_checkpoint(state_of(1), folder, ledger), folder)
    assert first == folder / "best/step_00001"
    assert keep_for_good(folder / "latest", folder) == first

    other = save_checkpoint(state_of(1), tmp_path / "other", ledger)
    altered = state_of(1)
    altered.values["kl_coef"] = 9.0
    save_checkpoint(altered, tmp_path / "other", ledger)
    assert keep_for_good(other, folder) == folder / "best/step_00001.2"
    assert load_checkpoint(first).values["kl_coef"] == 0.1 + 0.2
    assert load_checkpoint(folder / "best/step_00001.2").values["kl_coef"] == 9.0

    save_checkpoint(state_of(2), folder, ledger)
    prune(folder, last=1, best=0, scores={})
    assert load_checkpoint(first).step == 1


def test_a_damaged_checkpoint_never_becomes_a_best_one(tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    path = save_checkpoint(state_of(1), folder, tmp_path / "reports/ledger.jsonl")
    (path / "adapter.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"adapter\.safetensors: has SHA-256"):
        keep_for_good(path, folder)
    assert not (folder / "best").exists()


def test_a_copy_that_was_damaged_since_is_not_said_to_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    path = save_checkpoint(state_of(1), folder, tmp_path / "reports/ledger.jsonl")
    (keep_for_good(path, folder) / "adapter.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"adapter\.safetensors: has SHA-256"):
        keep_for_good(path, folder)
