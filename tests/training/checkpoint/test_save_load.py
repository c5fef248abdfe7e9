"""Checkpoints are loaded bit for bit as saved; every kind of damage is rejected with the file's name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from rc1_lib.training.callbacks.checkpoints import SaveRule
from rc1_lib.training.checkpoint.atomic_folder import CheckpointError
from rc1_lib.training.checkpoint.ledger import check_in_ledger, read_ledger
from rc1_lib.training.checkpoint.manifest import NoCheckpointError, fingerprint, resolve, write_manifest
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from tests.training.checkpoint.states import equal, state_of, trained


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path]:
    return tmp_path / "checkpoints/rc1", tmp_path / "reports/ckpt_manifest.jsonl"


def test_loaded_state_equals_the_saved_one(place: tuple[Path, Path]) -> None:
    saved = save_checkpoint(state_of(3), *place)
    assert saved.name == "step_00003"
    loaded = load_checkpoint(saved)
    assert equal(state_of(3), loaded)
    assert loaded.step == 3
    assert loaded.values["kl_coef"] == 0.1 + 0.2
    assert loaded.tensors["adapter"]["a.weight"].dtype == torch.bfloat16
    assert loaded.part("optimizer")["param_groups"] == trained(3)[1].state_dict()["param_groups"]


def test_a_swapped_checkpoint_is_rejected_after_later_saves_too(place: tuple[Path, Path], tmp_path: Path) -> None:
    folder, ledger = place
    first = save_checkpoint(state_of(1), folder, ledger)
    other = save_checkpoint(state_of(5), tmp_path / "w/other", tmp_path / "w/reports/ledger")
    shutil.rmtree(first)
    shutil.copytree(other, first)
    (folder / "step_00009").mkdir()  # a damaged folder is in nobody's way
    (folder / "step_00009/manifest.json").write_text("")
    save_checkpoint(state_of(2), folder, ledger)
    with pytest.raises(CheckpointError, match="put in its place"):
        check_in_ledger(first, ledger)


def test_latest_is_the_newest_and_the_ledger_lists_all(place: tuple[Path, Path]) -> None:
    folder, ledger = place
    paths = [save_checkpoint(state_of(step), folder, ledger) for step in (1, 2)]
    assert (folder / "latest").is_symlink()
    assert resolve("latest", folder) == resolve(2, folder) == resolve(str(paths[1]), folder) == paths[1]
    assert resolve(str(folder / "latest"), folder) == paths[1]
    lines = read_ledger(ledger)
    assert [(line["step"], line["path"]) for line in lines] == [
        (1, "checkpoints/rc1/step_00001"),
        (2, "checkpoints/rc1/step_00002"),
    ]
    assert [line["sha256"] for line in lines] == [fingerprint(path) for path in paths]
    assert set(lines[0]["files"]) == {path.name for path in paths[0].iterdir()} - {"manifest.json"}


def test_checkpoint_of_the_same_step_is_replaced(place: tuple[Path, Path]) -> None:
    save_checkpoint(state_of(1), *place)
    other = CheckpointState({"adapter": {"w": torch.ones(1)}}, {"step": 1})
    path = save_checkpoint(other, *place)
    assert equal(load_checkpoint(path), other)
    assert len(read_ledger(place[1])) == 2
    assert {entry.name for entry in place[0].iterdir()} == {"step_00001", "latest", ".write.lock"}


@pytest.mark.parametrize("name", ["adapter.safetensors", "nested.pt", "state.json", "manifest.json"])
def test_changed_byte_is_rejected_with_the_file_name(place: tuple[Path, Path], name: str) -> None:
    path = save_checkpoint(state_of(1), *place)
    content = bytearray((path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (path / name).write_bytes(content)
    with pytest.raises(CheckpointError):
        load_checkpoint(path, read_ledger(place[1])[0]["sha256"])
    if name != "manifest.json":
        with pytest.raises(CheckpointError, match=rf"{name}: .*SHA-256 [0-9a-f]{{12}}, .*manifest"):
            load_checkpoint(path)


def test_missing_and_extra_files_are_rejected_with_their_names(place: tuple[Path, Path]) -> None:
    path = save_checkpoint(state_of(1), *place)
    (path / "extra.bin").write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"extra\.bin: .*manifest"):
        load_checkpoint(path)
    (path / "extra.bin").unlink()
    (path / "value_head.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"value_head\.safetensors: .*\(No such"):
        load_checkpoint(path)
    (path / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match=r"manifest\.json: .*\(No such"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "content", [b"", b'{"format": 1, "step": 1, "files": {}}', b'{"format": 2, "step": "x", "files": {}}', b"\xff"]
)
def test_malformed_manifest_is_rejected(place: tuple[Path, Path], content: bytes) -> None:
    path = save_checkpoint(state_of(1), *place)
    (path / "manifest.json").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"manifest\.json: "):
        load_checkpoint(path)


@pytest.mark.parametrize("content", [b"{}", b"{"])
def test_malformed_state_is_rejected_even_with_a_matching_manifest(place: tuple[Path, Path], content: bytes) -> None:
    path = save_checkpoint(state_of(1), *place)
    (path / "state.json").write_bytes(content)
    write_manifest(path, 1)
    with pytest.raises(CheckpointError, match=r"state\.json: .*\bJSON object\b"):
        load_checkpoint(path)


class Touch:
    """Creates a file when it is unpickled."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, tuple[Path]]:
        return Path.touch, (self.made,)


def test_code_in_a_nested_state_is_rejected_and_not_run(place: tuple[Path, Path], tmp_path: Path) -> None:
    path, made = save_checkpoint(state_of(1), *place), tmp_path / "made"
    for content in (b"", b"PK", (path / "nested.pt").read_bytes()[:200]):
        (path / "nested.pt").write_bytes(content)
        write_manifest(path, 1)
        with pytest.raises(CheckpointError, match=r"nested\.pt: .*\(\w+Error\)"):
            load_checkpoint(path)
    torch.save({"rng": Touch(made)}, path / "nested.pt")
    write_manifest(path, 1)
    with pytest.raises(CheckpointError, match=r"nested\.pt: .*\(\w+Error\)"):
        load_checkpoint(path)
    assert not made.exists()


def test_renamed_checkpoint_is_rejected(place: tuple[Path, Path]) -> None:
    path = save_checkpoint(state_of(1), *place)
    with pytest.raises(CheckpointError, match=r"step_00009: .*step 1, .*step 9; "):
        load_checkpoint(path.rename(path.parent / "step_00009"))


def test_missing_checkpoint_is_rejected_with_the_existing_steps(place: tuple[Path, Path]) -> None:
    with pytest.raises(NoCheckpointError, match=r"latest: .*: none; "):
        resolve("latest", place[0])
    save_checkpoint(state_of(5), *place)
    with pytest.raises(NoCheckpointError, match=r"step_00007: .*: 5; "):
        resolve("7", place[0])


def test_second_writer_is_rejected(place: tuple[Path, Path]) -> None:
    place[0].mkdir(parents=True)
    with (
        FileLock(place[0] / ".write.lock"),
        pytest.raises(CheckpointError, match=r"\.write\.lock"),
    ):
        save_checkpoint(state_of(1), *place)


def test_save_is_due_at_step_multiples_and_after_the_minutes() -> None:
    rule = SaveRule(every_steps=10, every_minutes=30)
    assert [step for step in range(41) if rule.due(step, saved_step=0, minutes_since=0)] == [10, 20, 30, 40]
    assert rule.due(13, saved_step=10, minutes_since=30)
    assert not rule.due(13, saved_step=10, minutes_since=29.9)
    assert not rule.due(10, saved_step=10, minutes_since=99)
    assert not SaveRule(every_steps=10, every_minutes=None).due(13, saved_step=0, minutes_since=1e9)
