"""Which checkpoints stay, and what is left where one is removed."""

from __future__ import annotations

import os
import shutil
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
    """Checkpoints of the steps 1 to 5."""
    for step in range(1, 6):
        save_checkpoint(state_of(step), tmp_path / "ckpt", ledger)
    return tmp_path / "ckpt"


@pytest.mark.parametrize(
    ("rule", "stay"),
    [
        (KeepRule(2), {5, 6}),
        (KeepRule(1, every=3), {3, 6}),
        (KeepRule(1, every=2, always=frozenset({1, 9})), {1, 2, 4, 6}),
        (KeepRule(9), {1, 2, 3, 4, 5, 6}),
    ],
)
def test_the_newest_every_nth_and_named_steps_stay(rule: KeepRule, stay: set[int]) -> None:
    assert rule.kept([4, 1, 6, 2, 5, 3]) == stay


@pytest.mark.parametrize(("last", "every"), [(0, None), (1, 0)])
def test_a_rule_that_keeps_nothing_is_none(last: int, every: int | None) -> None:
    with pytest.raises(AssertionError):
        KeepRule(last, every)


def test_what_is_removed_stays_on_record(folder: Path, ledger: Path) -> None:
    prints = {step: fingerprint(path) for step, path in steps(folder).items()}
    gone = prune(folder, ledger, KeepRule(2, every=2))
    assert [path.name for path in gone] == ["step_00001", "step_00003"]
    assert list(steps(folder)) == [2, 4, 5]
    assert prune(folder, ledger, KeepRule(2, every=2)) == []
    lines = read_ledger(ledger)
    assert {line["step"]: line["sha256"] for line in lines if "written" in line} == prints
    assert {line["step"]: line["sha256"] for line in lines if "removed" in line} == {1: prints[1], 3: prints[3]}
    assert was_removed(folder / "step_00001", prints[1], ledger)
    assert not was_removed(folder / "step_00001", prints[3], ledger), "that is another one's"
    assert not was_removed(folder / "step_00002", prints[2], ledger), "it is there"
    shutil.rmtree(folder / "step_00002")
    assert not was_removed(folder / "step_00002", prints[2], ledger), "somebody else removed it"


def test_one_that_is_trained_and_removed_again_is_entered_once(folder: Path, ledger: Path) -> None:
    for _ in range(2):
        prune(folder, ledger, KeepRule(4))
        save_checkpoint(state_of(1), folder, ledger)
        save_checkpoint(state_of(5), folder, ledger)
    assert [line["step"] for line in read_ledger(ledger) if "removed" in line] == [1]


def test_one_that_a_report_names_stays(folder: Path, ledger: Path) -> None:
    write_json(ledger.parent / "ppo_eval_x.json", {"checkpoints": {"PPO seed 1": fingerprint(folder / "step_00002")}})
    assert [path.name for path in prune(folder, ledger, KeepRule(1))] == ["step_00001", "step_00003", "step_00004"]
    assert list(steps(folder)) == [2, 5]


def test_steps_beyond_latest_are_another_runs(folder: Path, ledger: Path) -> None:
    save_checkpoint(state_of(3), folder, ledger)
    prune(folder, ledger, KeepRule(1))
    assert list(steps(folder)) == [3, 4, 5]


def lost(link: Path) -> None:
    link.unlink()


def dangling(link: Path) -> None:
    link.unlink()
    link.symlink_to("step_00009")


def elsewhere(link: Path) -> None:
    shutil.copytree(link.resolve(), link.parent.parent / "other/step_00005")
    link.unlink()
    link.symlink_to("../other/step_00005")


def no_checkpoint(link: Path) -> None:
    (link / "manifest.json").unlink()


def torn(link: Path) -> None:
    os.truncate(link / "adapter.safetensors", 10)


@pytest.mark.parametrize("damage", [lost, dangling, elsewhere, no_checkpoint, torn])
def test_nothing_goes_where_latest_leads_to_nothing_whole(folder: Path, ledger: Path, damage: object) -> None:
    assert callable(damage)
    damage(folder / "latest")
    before = ledger.read_bytes()
    with pytest.raises(CheckpointError):
        prune(folder, ledger, KeepRule(1))
    assert list(steps(folder)) == [1, 2, 3, 4, 5]
    assert ledger.read_bytes() == before


def test_a_folder_that_nobody_finished_is_not_removed(folder: Path, ledger: Path) -> None:
    (folder / "step_00002/manifest.json").unlink()
    prune(folder, ledger, KeepRule(1))
    assert list(steps(folder)) == [2, 5]


def test_best_only_ever_gains(tmp_path: Path) -> None:
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


def test_a_damaged_checkpoint_never_becomes_a_best_one(tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    path = save_checkpoint(state_of(1), folder, tmp_path / "reports/ledger.jsonl")
    (path / "adapter.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"adapter\.safetensors: has SHA-256"):
        keep_permanently(path, folder)
    assert not (folder / "best").exists()


def test_a_copy_that_was_damaged_since_is_not_said_to_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    path = save_checkpoint(state_of(1), folder, tmp_path / "reports/ledger.jsonl")
    (keep_permanently(path, folder) / "adapter.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"adapter\.safetensors: has SHA-256"):
        keep_permanently(path, folder)
