"""Which checkpoints are kept, and what is recorded about removed ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.ledger import read_ledger, was_removed
from rc1_lib.training.checkpoint.manifest import fingerprint, steps
from rc1_lib.training.checkpoint.retention import KeepRule, keep_permanently, prune
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.workspace.artifacts import write_json
from tests.training.checkpoint.states import state_of


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "reports/ledger.jsonl"


@pytest.fixture
def folder(tmp_path: Path, ledger: Path) -> Path:
    """A folder with checkpoints of steps 1 to 5."""
    for step in range(1, 6):
        save_checkpoint(state_of(step), tmp_path / "ckpt", ledger)
    return tmp_path / "ckpt"


@pytest.mark.parametrize(
    ("rule", "kept"),
    [
        (KeepRule(2), {5, 6}),
        (KeepRule(1, every=3), {3, 6}),
        (KeepRule(9), {1, 2, 3, 4, 5, 6}),
    ],
)
def test_rule_keeps_the_newest_and_every_nth(rule: KeepRule, kept: set[int]) -> None:
    assert rule.kept([4, 1, 6, 2, 5, 3]) == kept


def test_removed_checkpoints_stay_in_the_ledger(folder: Path, ledger: Path) -> None:
    prints = {step: fingerprint(path) for step, path in steps(folder).items()}
    removed = prune(folder, ledger, KeepRule(2, every=2))
    assert [path.name for path in removed] == ["step_00001", "step_00003"]
    assert list(steps(folder)) == [2, 4, 5]
    assert prune(folder, ledger, KeepRule(2, every=2)) == []
    lines = read_ledger(ledger)
    assert {line["step"]: line["sha256"] for line in lines if "written" in line} == prints
    assert {line["step"]: line["sha256"] for line in lines if "removed" in line} == {1: prints[1], 3: prints[3]}
    assert was_removed(folder / "step_00001", prints[1], ledger)
    assert not was_removed(folder / "step_00001", prints[3], ledger), "the hash of another checkpoint"
    assert not was_removed(folder / "step_00002", prints[2], ledger), "it exists"
    shutil.rmtree(folder / "step_00002")
    assert not was_removed(folder / "step_00002", prints[2], ledger), "RC1 did not remove it"


def test_checkpoint_named_by_a_report_is_kept(folder: Path, ledger: Path) -> None:
    write_json(ledger.parent / "ppo_eval_x.json", {"checkpoints": {"PPO seed 1": fingerprint(folder / "step_00002")}})
    assert [path.name for path in prune(folder, ledger, KeepRule(1))] == ["step_00001", "step_00003", "step_00004"]
    assert list(steps(folder)) == [2, 5]


def dangling_link(link: Path) -> None:
    link.unlink()
    link.symlink_to("step_00009")


def truncated_file(link: Path) -> None:
    os.truncate(link / "adapter.safetensors", 10)


@pytest.mark.parametrize("damage", [dangling_link, truncated_file])
def test_nothing_is_removed_if_latest_is_damaged(folder: Path, ledger: Path, damage: Callable[[Path], None]) -> None:
    damage(folder / "latest")
    before = ledger.read_bytes()
    with pytest.raises(CheckpointError):
        prune(folder, ledger, KeepRule(1))
    assert list(steps(folder)) == [1, 2, 3, 4, 5]
    assert ledger.read_bytes() == before


def test_best_folder_keeps_all_its_checkpoints(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "ckpt", tmp_path / "reports/ledger.jsonl"
    first = keep_permanently(save_checkpoint(state_of(1), folder, ledger), folder)
    assert first == folder / "best/step_00001"
    assert keep_permanently(folder / "latest", folder) == first

    other = save_checkpoint(state_of(1), tmp_path / "other", ledger)
    altered = state_of(1)
    altered.values["kl_coef"] = 9.0
    save_checkpoint(altered, tmp_path / "other", ledger)
    assert keep_permanently(other, folder) == folder / "best/step_00001.2"
    assert load_checkpoint(first).values["kl_coef"] == 0.1 + 0.2
    assert load_checkpoint(folder / "best/step_00001.2").values["kl_coef"] == 9.0

    save_checkpoint(state_of(2), folder, ledger)
    prune(folder, ledger, KeepRule(1))
    assert load_checkpoint(first).step == 1
