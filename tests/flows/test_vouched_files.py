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
from rc1_lib.cli import main
from rc1_lib.evidence import described
from rc1_lib.gate_report import GateReport
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.checkpoint.save_load import load_checkpoint, save_checkpoint
from rc1_lib.training.derived import REFERENCE
from rc1_lib.training.run_paths import LEDGER
from rc1_lib.training.warm_start import RECORD
from rc1_lib.workspace.artifacts import PROJECT_ROOT, read_json, write_json
from rc1_lib.workspace.file_hashes import sha256_file
from tests.conftest import Verdicts
from tests.evaluation.tables import PPO, SFT
from tests.once import copied
from tests.shares import share
from tests.ticketed import ticketed

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


@pytest.mark.parametrize("kind", share(["balanced", "metrics", "templates", "base"], "balanced"))
def test_file_swapped_after_the_ticket_was_verified_prevents_training(
    opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    run = copied(opened, tmp_path / "workspace")
    copy_project_files(run)
    after(monkeypatch, "verify", lambda: swap(run, kind))
    state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused")
    name = run.workspace.name(described(kind).path(run))
    assert f"{name} has changed since the ticket that pins it ({kind}) was verified" in str(state.message)
    assert not run.workspace.path(RUN).exists()


@pytest.mark.parametrize("kind", ["weights", "judge_spec"])
def test_judge_files_swapped_after_verification_prevent_judged_training(
    built: Run, verdicts: Verdicts, opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    copy_project_files(copied(opened, tmp_path / "workspace"))
    run = ticketed(tmp_path / "workspace", built, verdicts, "training.reward.judge=0.5")
    after(monkeypatch, "verify", lambda: swap(run, kind))
    state = start(run)
    assert state.name == "Refused"
    assert f"has changed since the ticket that pins it ({kind}) was verified" in str(state.message)
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


def test_warm_start_swapped_with_its_record_prevents_training(
    built: Run, verdicts: Verdicts, opened: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(opened, tmp_path / "workspace")
    run = ticketed(tmp_path / "workspace", built, verdicts, "training.warm_start.steps=1")

    def another() -> None:
        weights, record = (REFERENCE.path(run) / name for name in ("model.safetensors", RECORD))
        alter(weights)
        body = read_json(record)
        body["files"][weights.name] = sha256_file(weights)
        write_json(record, body)

    after(monkeypatch, "warm_start", another)
    state = start(run)
    assert (state.is_failed(), state.name) == (True, "Refused"), state.message
    assert "checkpoints/sft: not the initial policy of this training" in str(state.message)
    assert not run.workspace.path(RUN).exists()


COMPARED_AGAIN = ("shadow", "takes", "pool", "weights", "judge_spec", "reference_templates", "base")


@pytest.mark.parametrize("kind", share(COMPARED_AGAIN, "pool", "weights"))
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


def test_checkpoint_replaced_before_the_evaluation_fails_it(
    done: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(done.run, tmp_path / "workspace")
    expected = fingerprint(run.workspace.path(LAST))
    after(monkeypatch, "trained", lambda: replace_last_checkpoint(run))
    state = start(run, evaluate=True)
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    assert f"{LAST}/manifest.json: has SHA-256" in str(state.message) and f"expected {expected[:12]}" in str(
        state.message
    )


def rc1(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("command", [("ticket", "verify"), ("train",)])
def test_base_moved_into_the_current_directory_makes_the_command_fail(
    opened: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:
    run = copied(opened, tmp_path / "workspace")
    flags = ["--workspace", run.workspace.root, *(part for one in run.overrides for part in ("--set", one))]
    assert rc1("ticket", "verify", *flags) == 0
    (tmp_path / "elsewhere").mkdir()
    run.workspace.path("base").rename(tmp_path / "elsewhere/base")
    monkeypatch.chdir(tmp_path / "elsewhere")
    capsys.readouterr()
    assert rc1(*command, *flags) == 2
    assert "the ticket is not valid: base is missing" in " ".join(capsys.readouterr().err.split())
    assert not run.workspace.path("checkpoints").exists()
