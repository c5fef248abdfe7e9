"""A kill -9 during a write leaves the old checkpoint or the new one.

Children are forked to save the import of torch. They kill themselves at one file-system event after the other (found
by Python's audit hooks), or tests kill them at random times.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import pytest
import torch

from rc1_lib.training.another_run import check_no_other_run
from rc1_lib.training.checkpoint.ledger import read_ledger, was_removed
from rc1_lib.training.checkpoint.manifest import fingerprint, resolve, steps
from rc1_lib.training.checkpoint.retention import KeepRule, prune
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState, diff_checkpoints
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.workspace.artifacts import Workspace

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FORK = multiprocessing.get_context("fork")
EVENTS = {"open", "os.rename", "os.symlink", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "shutil.rmtree"}


EVENT_STRIDES = pytest.mark.parametrize("stride", [4, pytest.param(1, marks=pytest.mark.long)])
"""Kills come at every fourth event, in the long tests at every event."""


def state_of(step: int, mark: int = 0) -> CheckpointState:
    tensors = {"w": torch.full((64, 64), float(step)), "mark": torch.tensor(mark)}
    return CheckpointState({"adapter": tensors}, {"step": step}, {"rng": {"state": torch.arange(step)}})


def run_and_kill_at(event: int, work: Callable[[], object]) -> bool:
    """Run `work` in a child that kills itself at its n-th event; return whether it finished before."""

    def child() -> None:
        count = 0

        def hook(name: str, args: object) -> None:
            nonlocal count
            if name in EVENTS:
                count += 1
                if count == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        torch.set_num_threads(1)
        sys.addaudithook(hook)
        work()
        os._exit(0)

    process = FORK.Process(target=child)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0


def is_state(path: Path, wanted: CheckpointState) -> bool:
    return diff_checkpoints(load_checkpoint(path), wanted, exact=True) == []


@EVENT_STRIDES
def test_save_killed_at_any_event_leaves_the_old_or_the_new_state(stride: int, tmp_path: Path) -> None:
    for event in range(1, 200, stride):
        folder, ledger = tmp_path / str(event) / "ckpt", tmp_path / str(event) / "reports/ledger.jsonl"
        save_checkpoint(state_of(1), folder, ledger)
        whole = run_and_kill_at(event, partial(save_checkpoint, state_of(2), folder, ledger))
        newest = resolve("latest", folder)
        assert is_state(newest, state_of(2 if newest.name == "step_00002" else 1)), event
        save_checkpoint(state_of(3), folder, ledger)
        assert not list(folder.glob(".new-*")), "the next save must remove leftovers"
        assert {line["path"].rpartition("/")[2] for line in read_ledger(ledger)} == {
            path.name for path in steps(folder).values()
        }
        if whole:
            assert newest.name == "step_00002"
            assert event > 10, "the hook missed the save's events"
            return
    pytest.fail("the save never finished")


@EVENT_STRIDES
def test_replacement_killed_at_any_event_leaves_one_of_both_states(stride: int, tmp_path: Path) -> None:
    seen = set()
    for event in range(1, 200, stride):
        folder, ledger = tmp_path / str(event) / "ckpt", tmp_path / str(event) / "reports/ledger.jsonl"
        save_checkpoint(state_of(1, mark=1), folder, ledger)
        whole = run_and_kill_at(event, partial(save_checkpoint, state_of(1, mark=2), folder, ledger))
        mark = int(load_checkpoint(resolve("latest", folder)).tensors["adapter"]["mark"])
        assert is_state(folder / "latest", state_of(1, mark)), event
        seen.add(mark)
        if whole:
            assert seen == {1, 2}
            return
    pytest.fail("the save never finished")


@EVENT_STRIDES
def test_removal_killed_at_any_event_leaves_whole_checkpoints(stride: int, tmp_path: Path) -> None:
    for event in range(1, 60, stride):
        folder, ledger = tmp_path / str(event) / "ckpt", tmp_path / str(event) / "reports/ledger.jsonl"
        for step in (1, 2):
            save_checkpoint(state_of(step), folder, ledger)
        first = fingerprint(folder / "step_00001")
        whole = run_and_kill_at(event, partial(prune, folder, ledger, KeepRule(1)))
        for step, path in steps(folder).items():
            assert is_state(path, state_of(step)), event
        assert 2 in steps(folder)
        assert 1 in steps(folder) or was_removed(folder / "step_00001", first, ledger), event
        prune(folder, ledger, KeepRule(1))  # the next prune finishes the removal
        assert sorted(path.name for path in folder.iterdir()) == [".write.lock", "latest", "step_00002"]
        if whole:
            return
    pytest.fail("the removal never finished")


@EVENT_STRIDES
def test_start_over_killed_at_any_event_leaves_checkpoints_whole_or_removed(stride: int, tmp_path: Path) -> None:
    def differs(values: Mapping[str, Any]) -> list[str]:
        return [] if values.get("run") == "mine" else ["run"]

    def start_over(place: Workspace) -> None:
        check_no_other_run(place.path("ckpt"), place, "reports/metrics.jsonl", differs, True, lambda _: None)

    for event in range(1, 100, stride):
        place = Workspace(tmp_path / str(event))
        folder, metrics = place.path("ckpt"), place.path("reports/metrics.jsonl")
        for step in (1, 2):
            save_checkpoint(state_of(step), folder, place.path(LEDGER))
        metrics.write_text("theirs")
        whole = run_and_kill_at(event, partial(start_over, place))
        for step, path in steps(folder).items():
            assert is_state(path, state_of(step)), event
        assert not metrics.exists() or len(steps(folder)) == 2, "metrics are left without their checkpoints"
        start_over(place)
        assert sorted(path.name for path in folder.iterdir()) == [".write.lock"] and not metrics.exists()
        mine = state_of(3)
        mine.values["run"] = "mine"
        save_checkpoint(mine, folder, place.path(LEDGER))
        start_over(place)
        assert list(steps(folder)) == [3]
        if whole:
            return
    pytest.fail("starting over never finished")


def test_latest_checkpoint_loads_after_kills_at_random_times(tmp_path: Path) -> None:
    folder, ledger = tmp_path / "ckpt", tmp_path / "reports/ledger.jsonl"
    save_checkpoint(state_of(1), folder, ledger)
    rng = random.Random(20250820)
    reached = [1]

    def loop(first: int, has_saved: Event) -> None:
        torch.set_num_threads(1)
        for step in range(first, 1_000_000):
            save_checkpoint(state_of(step), folder, ledger)
            prune(folder, ledger, KeepRule(2))
            if step > first:
                has_saved.set()

    for _ in range(12):
        has_saved = FORK.Event()
        process = FORK.Process(target=loop, args=(reached[-1], has_saved))
        process.start()
        assert has_saved.wait(120), "the child wrote nothing"
        time.sleep(rng.uniform(0.01, 0.25))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL, "the child ended before the kill"
        newest = load_checkpoint(resolve("latest", folder))
        assert diff_checkpoints(newest, state_of(newest.step), exact=True) == []
        assert newest.step > reached[-1]
        reached.append(newest.step)
