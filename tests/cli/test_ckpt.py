"""`ckpt list`: checkpoints and their integrity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.retention import keep_permanently
from rc1_lib.training.checkpoint.save_load import save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState

from .conftest import Rc1

RUN = "checkpoints/rc1"


def save(root: Path, step: int, weight: float, folder: str = RUN) -> Path:
    state = CheckpointState({"adapter": {"w": torch.tensor([weight, 2.0])}}, {"seed": 7, "step": step})
    return save_checkpoint(state, root / folder, root / "reports/ckpt_manifest.jsonl")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with the checkpoints of steps 1 and 2, and one kept permanently."""
    save(tmp_path, 1, 1.0)
    keep_permanently(save(tmp_path, 2, 1.5), tmp_path / RUN)
    return tmp_path


def test_every_checkpoint_is_listed_with_its_hash(rc1: Rc1, place: Path) -> None:
    done = rc1("ckpt", "list", "--workspace", place, "--json")
    rows = json.loads(done.out)["checkpoints"]
    assert done.code == 0
    assert [row["path"] for row in rows] == [f"{RUN}/step_00001", f"{RUN}/step_00002", f"{RUN}/best/step_00002"]
    assert [row["latest"] for row in rows] == [False, True, False]
    assert {row["sha256"] for row in rows} == {fingerprint(place / RUN / f"step_0000{step}") for step in (1, 2)}
    shown = rc1("ckpt", "list", "--workspace", place).out
    assert f"{RUN}/step_00002 (latest)" in shown
    assert shown.splitlines()[-1] == "pass: 3 checkpoints, all whole"


def test_damaged_checkpoint_is_listed_as_damaged(rc1: Rc1, place: Path) -> None:
    (place / RUN / "step_00001/adapter.safetensors").unlink()
    done = rc1("ckpt", "list", "--workspace", place, "--json")
    states = [row["state"].partition(":")[0] for row in json.loads(done.out)["checkpoints"]]
    assert (done.code, states) == (2, ["DAMAGED", "whole", "whole"])
    shown = rc1("ckpt", "list", "--workspace", place).out
    assert f"{RUN}/step_00001: " in shown and "adapter.safetensors" in shown
    verdict, failed, advice = shown.splitlines()[-3:]
    assert verdict == "fail: 1 of 3 checkpoints are damaged"
    assert failed.startswith(f"  {RUN}/step_00001: ") and advice.startswith("what to do: restore its files")


def test_folder_with_another_name_is_not_listed(rc1: Rc1, place: Path) -> None:
    for name in ("step_00012_backup", "step_00001.2", "best/step_00002.old"):
        (place / RUN / name).mkdir()
    (place / RUN / "step_x").write_text("a note")
    save(place, 2, 9.0)
    keep_permanently(place / RUN / "step_00002", place / RUN)
    done = rc1("ckpt", "list", "--workspace", place, "--json")
    rows = [(row["path"].removeprefix(f"{RUN}/"), row["step"]) for row in json.loads(done.out)["checkpoints"]]
    assert done.code == 0
    assert rows == [("step_00001", 1), ("step_00002", 2), ("best/step_00002", 2), ("best/step_00002.2", 2)]
