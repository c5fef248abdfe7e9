"""Files of a ticket are compared when training reads them, before the evaluation, and before a checkpoint is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import flows.train
import tasks.evaluation
from rc1_lib.evidence import described
from rc1_lib.gate_report import GateReport
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.evaluation.tables import PPO, SFT
from tests.once import copied

from .test_train import of_habits
from .trainings import LAST, RUN, Ended, alter, logged, start


def copy_project_files(run: Run) -> None:
    """Copy the project's files of the ticket into the workspace, where a test may damage them."""
    for name in ("configs/judge/v1.yaml", "templates/pack_v2", "templates/pack_v1"):
        source, target = PROJECT_ROOT / name, run.workspace.path(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)


def swap(run: Run, kind: str) -> str:
    """Alter the file or folder of this kind, and return its name."""
    path = described(kind).path(run)
    alter(path) if path.is_file() else alter(max(path.rglob("*.json")))
    return run.workspace.name(path)


def after(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Call `act` right after a step of the flow."""
    step = getattr(flows.train, name)

    def both(*args: Any, **kwargs: Any) -> Any:
        done = step(*args, **kwargs)
        act()
        return done

    monkeypatch.setattr(flows.train, name, both)


def test_file_swapped_after_the_ticket_was_verified_prevents_training(
    opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(opened, tmp_path / "workspace")
    copy_project_files(run)
    after(monkeypatch, "verify", lambda: swap(run, "balanced"))
    state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused")
    assert f"{run.config.seed_pool} has changed since the ticket that pins it (balanced) was verified" in str(
        state.message
    )
    assert not run.workspace.path(RUN).exists()


def test_pool_swapped_between_segments_ends_training(
    opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(opened, tmp_path / "workspace")
    after(monkeypatch, "_segment", lambda: swap(run, "balanced"))
    state = start(run)
    assert state.name == "Refused"
    assert f"{run.config.seed_pool} has changed since" in str(state.message)
    assert not run.workspace.path(LAST).exists()


def test_ticket_revoked_between_segments_ends_training(
    opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(opened, tmp_path / "workspace")
    after(monkeypatch, "_segment", lambda: revoke_ticket(run, "the pool was found to leak"))
    state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused")
    assert "the pool was found to leak" in str(state.message)
    assert logged(run) == [1, 2] and not run.workspace.path(LAST).exists()


@pytest.mark.parametrize("kind", ["pool", "weights"])
def test_every_file_is_compared_again_before_the_evaluation(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    copy_project_files(run)
    after(monkeypatch, "trained", lambda: swap(run, kind))
    state = start(run, evaluate=True)
    assert (state.is_failed(), state.name) == (True, "Refused"), state.message
    assert f"has changed since the ticket that pins it ({kind}) was verified" in str(state.message)
    assert not list(run.workspace.path("reports").glob("ppo_eval_*.json"))


def passing(act: Callable[[], object]) -> Callable[..., GateReport]:
    """A passed evaluation during which `act` is called."""
    evaluate = of_habits(SFT, PPO)

    def both(*args: Any) -> GateReport:
        found = evaluate(*args)
        act()
        return found

    return both


def test_every_file_is_compared_again_before_a_checkpoint_is_kept(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    monkeypatch.setattr(tasks.evaluation, "evaluate_run", passing(lambda: swap(run, "balanced")))
    state = start(run, evaluate=True)
    assert state.name == "Refused"
    assert f"{run.config.seed_pool} has changed since" in str(state.message)
    assert not run.workspace.path(f"{RUN}/best").exists()


def replace_last_checkpoint(run: Run) -> None:
    """Replace the last checkpoint by an earlier, valid one."""
    last = run.workspace.path(LAST)
    shutil.rmtree(last)
    shutil.copytree(last.with_name("step_00002"), last)


def test_checkpoint_replaced_during_the_evaluation_is_not_kept(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    monkeypatch.setattr(tasks.evaluation, "evaluate_run", passing(lambda: replace_last_checkpoint(run)))
    state = start(run, evaluate=True)
    assert state.name == "Refused"
    assert f"{LAST}/manifest.json: has SHA-256" in str(state.message)
    assert not run.workspace.path(f"{RUN}/best").exists()


def test_checkpoint_replaced_between_segments_ends_training(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replacement is valid and names the same run, but is not the segment's result."""
    run = copied(done.run, tmp_path / "workspace")
    shutil.rmtree(run.workspace.path(LAST))
    first = run.workspace.path(f"{RUN}/step_00002")

    def another() -> None:
        state = load_checkpoint(first)
        changed = {name: value + 1 for name, value in state.tensors["adapter"].items()}
        tensors = {**state.tensors, "adapter": changed}
        save_checkpoint(replace(state, tensors=tensors), first.parent, run.workspace.path(LEDGER))

    after(monkeypatch, "_segment", another)
    state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused"), state.message
    assert f"{RUN}/step_00002/manifest.json: has SHA-256" in str(state.message)
    assert not run.workspace.path(LAST).exists()
