"""Segments of a training are cached by content, looked at byte for byte, and begun at any checkpoint of the run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import write_manifest
from rc1_lib.training.checkpoint.retention import KeepRule, prune
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.workspace.artifacts import read_json, write_json
from tasks.train import segment_key
from tests.once import copied
from tests.shares import share

from .trainings import LAST, RUN, Ended, alter, cached, logged, prints, start


@pytest.mark.parametrize(
    "other",
    [{"seed": 2}, {"first": 2}, {"last": 5}, {"facts": {"base": "b"}}, {"previous": "p"}, {"code": "another"}],
)
def test_all_that_decides_a_segment_is_part_of_its_key(other: dict[str, Any]) -> None:
    same = {"seed": 1, "first": 1, "last": 4, "facts": {"base": "a"}, "previous": "", "code": "this"}
    assert segment_key(**same) == segment_key(**same)
    assert segment_key(**same) != segment_key(**{**same, **other})


def test_a_finished_training_is_cached(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 2
    assert prints(run) == prints(done.run)


@pytest.mark.parametrize("lost", share(["step_00002", "step_00004"], "step_00002"))
def test_a_cached_segment_whose_checkpoint_is_gone_is_trained_again(done: Ended, tmp_path: Path, lost: str) -> None:
    run = copied(done.run, tmp_path / "workspace")
    shutil.rmtree(run.workspace.path(f"{RUN}/{lost}"))
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 1
    assert prints(run) == prints(done.run)
    assert logged(run) == [1, 2, 3, 4]
    assert run.workspace.path(f"{RUN}/latest").resolve().name == "step_00004"
    assert sorted(path.name for path in run.workspace.path("checkpoints").iterdir()) == ["rc1"]


@pytest.mark.parametrize("altered", share(["step_00002", "step_00004"], "step_00002"))
def test_a_cached_segment_whose_checkpoint_was_altered_is_trained_again(
    done: Ended, tmp_path: Path, altered: str
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    alter(run.workspace.path(f"{RUN}/{altered}/adapter.safetensors"))
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 1
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 2, "what was put back is whole"
    assert prints(run) == prints(done.run)


def test_a_segment_whose_checkpoint_the_rule_removed_is_not_trained_again(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    run.workspace.path("reports/train.json").unlink()  # a report keeps what it names
    prune(run.workspace.path(RUN), run.workspace.path(LEDGER), KeepRule(1))
    assert start(run).name == "PolicyTrained"
    assert (cached(run), list(prints(run))) == (2, ["step_00004"])
    shutil.rmtree(run.workspace.path(LAST))
    assert start(run).name == "PolicyTrained"
    assert cached(run) == 1, "what is gone without the rule is trained again, all the way to the same bytes"
    assert prints(run)["step_00004"] == prints(done.run)["step_00004"]


def records(run: Run) -> list[Path]:
    """What is known of finished segments, in the order of the steps."""
    return sorted(run.workspace.path("reports/rc1/segments").glob("20250820-*"))


def test_damaged_records_are_trained_again(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    first, second = records(run)
    first.write_bytes(b"{")
    write_json(second, {"checkpoint": LAST, "sha256": prints(run)["step_00004"]})
    assert start(run).name == "PolicyTrained"
    assert (cached(run), prints(run)) == (0, prints(done.run))


def test_a_record_that_names_another_checkpoint_is_not_believed(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    first, second = records(run)
    write_json(second, {**read_json(second), "checkpoint": f"{RUN}/step_00002", "sha256": read_json(first)["sha256"]})
    assert start(run).name == "PolicyTrained"
    assert (cached(run), prints(run)) == (1, prints(done.run))


def test_a_record_that_lets_the_run_end_before_its_last_step_is_not_believed(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    first, _ = records(run)
    write_json(first, {**read_json(first), "last": 1})
    assert start(run).name == "PolicyTrained"
    assert (cached(run), prints(run)) == (1, prints(done.run))


@pytest.mark.long
def test_a_checkpoint_forged_with_its_manifest_and_its_segments_record_is_trained_again(
    done: Ended, tmp_path: Path
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    alter(run.workspace.path(f"{LAST}/nested.pt"))
    write_manifest(run.workspace.path(LAST), 4)
    _, second = records(run)
    write_json(second, {**read_json(second), "sha256": prints(run)["step_00004"]})
    assert start(run).name == "PolicyTrained"
    assert (cached(run), prints(run)) == (1, prints(done.run))


@pytest.mark.long
def test_another_seed_has_a_run_of_its_own(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    assert start(run, seeds=[20250821]).name == "PolicyTrained"
    assert prints(run) == prints(done.run)
    other = prints(run, f"{RUN}-20250821")
    assert list(other) == ["step_00002", "step_00004"] and other["step_00004"] != prints(run)["step_00004"]


def test_training_is_resumed_from_a_named_checkpoint(done: Ended, tmp_path: Path) -> None:
    run = copied(done.run, tmp_path / "workspace")
    shutil.rmtree(run.workspace.path(LAST))
    state = start(run, resume_from=f"{RUN}/step_00002")
    assert state.name == "PolicyTrained", state.message
    assert prints(run) == prints(done.run)
    (one,) = read_json(run.workspace.path("reports/train.json"))["runs"]
    assert [(part["first"], part["last"]) for part in one["segments"]] == [(2, 2), (3, 4)]


def test_a_checkpoint_that_lies_elsewhere_is_brought_home(done: Ended, opened: Run, tmp_path: Path) -> None:
    run = copied(opened, tmp_path / "workspace")
    elsewhere = tmp_path / "usb" / "step_00002"
    shutil.copytree(done.run.workspace.path(f"{RUN}/step_00002"), elsewhere)
    state = start(run, resume_from=str(elsewhere))
    assert state.name == "PolicyTrained", state.message
    assert prints(run) == prints(done.run)


def test_a_second_run_leaves_the_first_alone_until_it_is_to_start_over(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    metrics = run.workspace.path("reports/metrics.jsonl")
    before = metrics.read_bytes()
    monkeypatch.setattr("rc1_lib.training.ppo_run.code_sha256", lambda: "other")
    state = start(run)
    assert state.name == "Refused" and "these differ: code (" in str(state.message)
    assert "--start-over" in str(state.message)
    assert (prints(run), metrics.read_bytes()) == (prints(done.run), before)
    state = start(run, start_over=True)
    assert state.name == "PolicyTrained", state.message
    assert cached(run) == 0 and prints(run) != prints(done.run) and logged(run) == [1, 2, 3, 4]
