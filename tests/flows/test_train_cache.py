"""Training segments are cached by content, verified byte for byte, and resumable from any checkpoint of the run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.run import Run
from rc1_lib.training.checkpoint.retention import KeepRule, prune
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.workspace.artifacts import read_json, write_json
from tasks.train import segment_key
from tests.once import copied
from tests.shares import share

from .trainings import LAST, RUN, Ended, cached, checkpoint_hashes, logged, start


@pytest.mark.parametrize(
    "other",
    [{"seed": 2}, {"first": 2}, {"last": 5}, {"facts": {"base": "b"}}, {"previous": "p"}, {"code": "another"}],
)
def test_segment_key_depends_on_everything_that_determines_the_segment(other: dict[str, Any]) -> None:
    same = {"seed": 1, "first": 1, "last": 4, "facts": {"base": "a"}, "previous": "", "code": "this"}
    assert segment_key(**same) == segment_key(**same)
    assert segment_key(**same) != segment_key(**{**same, **other})


def test_finished_training_is_cached(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 2
    assert checkpoint_hashes(run) == checkpoint_hashes(done.run)


@pytest.mark.parametrize("lost", share(["step_00002", "step_00004"], "step_00002"))
def test_cached_segment_is_retrained_when_its_checkpoint_is_missing(done: Ended, tmp_path: Path, lost: str) -> None:
    run = copied(done.run, tmp_path / "workspace")
    shutil.rmtree(run.workspace.path(f"{RUN}/{lost}"))
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 1
    assert checkpoint_hashes(run) == checkpoint_hashes(done.run)
    assert logged(run) == [1, 2, 3, 4]
    assert run.workspace.path(f"{RUN}/latest").resolve().name == "step_00004"
    assert sorted(path.name for path in run.workspace.path("checkpoints").iterdir()) == ["rc1"]


def test_segment_is_not_retrained_when_retention_removed_its_checkpoint(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    run.workspace.path("reports/train.json").unlink()  # retention keeps checkpoints that a report names
    prune(run.workspace.path(RUN), run.workspace.path(LEDGER), KeepRule(1))
    assert start(run).name == "PolicyTrained"
    assert (cached(run), list(checkpoint_hashes(run))) == (2, ["step_00004"])
    shutil.rmtree(run.workspace.path(LAST))
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 1, "a checkpoint missing for another reason is retrained"
    assert checkpoint_hashes(run)["step_00004"] == checkpoint_hashes(done.run)["step_00004"]


def records(run: Run) -> list[Path]:
    """The records of finished segments, in step order."""
    return sorted(run.workspace.path("reports/rc1/segments").glob("20250820-*"))


def test_segments_with_damaged_records_are_retrained(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    first, second = records(run)
    first.write_bytes(b"{")
    write_json(second, {"checkpoint": LAST, "sha256": checkpoint_hashes(run)["step_00004"]})
    assert start(run).name == "PolicyTrained"
    assert (cached(run), checkpoint_hashes(run)) == (0, checkpoint_hashes(done.run))


def test_training_resumes_from_a_checkpoint_that_lies_elsewhere(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    elsewhere = tmp_path / "step_00002"
    shutil.move(run.workspace.path(f"{RUN}/step_00002"), elsewhere)
    shutil.rmtree(run.workspace.path(LAST))
    state = start(run, resume_from=str(elsewhere))
    assert state.name == "PolicyTrained", state.message
    assert checkpoint_hashes(run) == checkpoint_hashes(done.run)
    (one,) = read_json(run.workspace.path("reports/train.json"))["runs"]
    assert [(part["first"], part["last"]) for part in one["segments"]] == [(2, 2), (3, 4)]
    shutil.rmtree(run.workspace.path(f"{RUN}/step_00002"))
    assert start(run, resume_from=str(elsewhere)).name == "PolicyTrained"
    assert run.workspace.path(f"{RUN}/latest").resolve().name == "step_00004"


def test_run_with_other_code_is_rejected_unless_it_starts_over(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    metrics = run.workspace.path("reports/metrics.jsonl")
    before = metrics.read_bytes()
    monkeypatch.setattr("rc1_lib.training.ppo_run.code_sha256", lambda *_: "other")
    state = start(run)
    assert state.name == "Refused" and "these differ: code (" in str(state.message)
    assert "--start-over" in str(state.message)
    assert (checkpoint_hashes(run), metrics.read_bytes()) == (checkpoint_hashes(done.run), before)
    state = start(run, start_over=True)
    assert state.name == "PolicyTrained", state.message
    assert cached(run) == 0 and checkpoint_hashes(run) != checkpoint_hashes(done.run) and logged(run) == [1, 2, 3, 4]
