"""A kill -9 during a write leaves the old checkpoint or the new one.

Children are forked to save the import of torch. They kill themselves at one file-system event after the other, found
by Python's audit hooks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from rc1_lib.training.another_run import check_no_other_run
from rc1_lib.training.checkpoint.ledger import read_ledger, was_removed
from rc1_lib.training.checkpoint.manifest import fingerprint, resolve, steps
from rc1_lib.training.checkpoint.retention import KeepRule, prune
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.checkpoint.state import CheckpointState
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.workspace.artifacts import Workspace
from tests.killed_at import run_and_kill_at
from tests.training.checkpoint.states import equal

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
Killed = Callable[[Callable[[Workspace], object], Callable[[Workspace], object]], Iterator[Workspace]]


def state_of(step: int, mark: int = 0) -> CheckpointState:
    tensors = {"w": torch.full((64, 64), float(step)), "mark": torch.tensor(mark)}
    return CheckpointState({"adapter": tensors}, {"step": step}, {"rng": {"state": torch.arange(step)}})


def _on_one_thread(work: Callable[[Workspace], object], place: Workspace) -> None:
    torch.set_num_threads(1)
    work(place)


def is_state(path: Path, wanted: CheckpointState) -> bool:
    return equal(load_checkpoint(path), wanted)


@pytest.fixture(params=[4, pytest.param(1, marks=pytest.mark.long)])
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Killed:
    """Yields workspaces in which `work` was killed at every fourth event after `prepare`, in the long tests at each."""

    def every(prepare: Callable[[Workspace], object], work: Callable[[Workspace], object]) -> Iterator[Workspace]:
        for event in range(1, 200, request.param):
            place = Workspace(tmp_path / str(event))
            prepare(place)
            whole = run_and_kill_at(event, partial(_on_one_thread, work, place))
            yield place
            if whole:
                return
        pytest.fail("the work never finished")

    return every


def saves(*states: CheckpointState) -> Callable[[Workspace], None]:
    def save(place: Workspace) -> None:
        for state in states:
            save_checkpoint(state, place.path("ckpt"), place.path(LEDGER))

    return save


def whole_steps(place: Workspace) -> dict[int, Path]:
    """The steps that are there; each must be whole."""
    found = steps(place.path("ckpt"))
    assert all(is_state(path, state_of(step)) for step, path in found.items()), place
    return found


def test_save_killed_at_any_event_leaves_the_old_or_the_new_state(killed: Killed) -> None:
    for place in killed(saves(state_of(1)), saves(state_of(2))):
        folder = place.path("ckpt")
        newest = resolve("latest", folder)
        assert is_state(newest, state_of(2 if newest.name == "step_00002" else 1)), place
        saves(state_of(3))(place)
        assert not list(folder.glob(".new-*")), "the next save must remove leftovers"
        listed = {line["path"].rpartition("/")[2] for line in read_ledger(place.path(LEDGER))}
        assert listed >= {path.name for path in steps(folder).values()}, "a line comes before its checkpoint"
    assert newest.name == "step_00002" and int(place.root.name) > 10, "the hook missed the save's events"


def test_replacement_killed_at_any_event_leaves_one_of_both_states(killed: Killed) -> None:
    seen = set()
    for place in killed(saves(state_of(1, mark=1)), saves(state_of(1, mark=2))):
        mark = int(load_checkpoint(resolve("latest", place.path("ckpt"))).tensors["adapter"]["mark"])
        assert is_state(place.path("ckpt") / "latest", state_of(1, mark)), place
        seen.add(mark)
    assert seen == {1, 2}


def test_removal_killed_at_any_event_leaves_whole_checkpoints(killed: Killed) -> None:
    def remove(place: Workspace) -> None:
        prune(place.path("ckpt"), place.path(LEDGER), KeepRule(1))

    first = ""

    def two(place: Workspace) -> None:
        nonlocal first
        saves(state_of(1), state_of(2))(place)
        first = fingerprint(place.path("ckpt/step_00001"))

    for place in killed(two, remove):
        found = whole_steps(place)
        assert 2 in found
        assert 1 in found or was_removed(place.path("ckpt/step_00001"), first, place.path(LEDGER)), place
        remove(place)  # the next prune finishes the removal
        assert sorted(path.name for path in place.path("ckpt").iterdir()) == [".write.lock", "latest", "step_00002"]


def test_start_over_killed_at_any_event_leaves_checkpoints_whole_or_removed(killed: Killed) -> None:
    def differs(values: Mapping[str, Any]) -> list[str]:
        return [] if values.get("run") == "mine" else ["run"]

    def start_over(place: Workspace) -> None:
        check_no_other_run(place.path("ckpt"), place, "reports/metrics.jsonl", differs, True, lambda _: None)

    def theirs(place: Workspace) -> None:
        saves(state_of(1), state_of(2))(place)
        place.path("reports/metrics.jsonl").write_text("theirs")

    mine = state_of(3)
    mine.values["run"] = "mine"
    for place in killed(theirs, start_over):
        folder, metrics, found = place.path("ckpt"), place.path("reports/metrics.jsonl"), whole_steps(place)
        assert not metrics.exists() or len(found) == 2, "metrics are left without their checkpoints"
        start_over(place)
        assert sorted(path.name for path in folder.iterdir()) == [".write.lock"] and not metrics.exists()
        saves(mine)(place)
        start_over(place)
        assert list(steps(folder)) == [3]
