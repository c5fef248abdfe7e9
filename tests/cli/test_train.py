"""`train` from the command line: its ticket, output and failures, and the small local configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rc1_lib.errors import ConfigError
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run, open_run
from rc1_lib.training.checkpoint.manifest import fingerprint
from rc1_lib.training.train_arguments import check_control
from rc1_lib.workspace.artifacts import read_json
from rc1_lib.workspace.folder import holding
from rc1_lib.workspace.state import state_of
from tests.once import copied
from tests.training.tiny import write_base

from .conftest import Done, Rc1, Served, settings

Ask = Callable[..., Done]
SMALL = ("run.device_pref=[cpu]", "run.mixed_precision=fp32", "run.max_steps=2", "data.max_length=96")


@pytest.fixture
def own(opened: Run, tmp_path: Path) -> Run:
    """A copy that a test may train in."""
    return copied(opened, tmp_path / "workspace")


@pytest.fixture
def ask(rc1: Rc1, own: Run) -> Ask:
    """`ask("train", "--no-evaluate")`: a command in the test's own workspace, with the settings of its ticket."""

    def run(name: str, *arguments: str) -> Done:
        return rc1(name, "--workspace", str(own.workspace.root), *settings(own.overrides), *arguments)

    return run


def packages(run: Run) -> int:
    return len(list(run.workspace.path("reports/rc1").glob("FAIL_*.tgz")))


def test_train_fails_before_a_server_starts_when_the_ticket_is_revoked(ask: Ask, own: Run) -> None:
    revoke_ticket(own, "a test")
    done = ask("train")
    assert done.code == 2
    assert "the ticket is not valid: it was revoked" in done.err
    assert "Traceback" not in done.err
    assert packages(own) == 0, "the message is enough"
    assert not own.workspace.path("checkpoints").exists()
    assert not state_of(own.workspace.root).exists()


@pytest.mark.parametrize("flag", ["--no-evaluate", "--profile-step"])
def test_train_fails_before_a_server_starts_when_another_run_holds_the_workspace(ask: Ask, own: Run, flag: str) -> None:
    with holding(own.workspace, "a preflight"):
        done = ask("train", flag)
    assert (done.code, f"a preflight (process {os.getpid()}, since 2" in done.err) == (2, True), done.err
    assert not state_of(own.workspace.root).exists()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--seed 77", "seed 77 is not in `seeds` (20250820"),
        ("--all-seeds --resume-from latest", "a checkpoint belongs to one run, but 3 seeds were given"),
        ("--start-over --resume-from latest", "with --start-over, which removes the checkpoints"),
        ("--control random --no-evaluate", "leave out --no-evaluate"),
        ("--resume-from 4", "no such checkpoint; steps in"),
    ],
)
def test_invalid_flags_fail_before_a_server_starts(ask: Ask, own: Run, flags: str, sentence: str) -> None:
    done = ask("train", *flags.split())
    assert (done.code, sentence in done.err) == (2, True), done.err
    assert not state_of(own.workspace.root).exists()


@pytest.mark.parametrize("engine", ["torch_grpo", "trl_dpo"])
def test_constant_control_of_an_engine_that_compares_rewards_is_refused(engine: str, tmp_path: Path) -> None:
    run = open_run(workspace=tmp_path, overrides=(f"training.engine={engine}", "training.strategy=groups"))
    check_control(run, "random", None, evaluate=True)
    with pytest.raises(ConfigError, match="use --control random"):
        check_control(run, "constant", None, evaluate=True)


def test_profile_step_shows_the_time_by_part_and_writes_no_run(ask: Ask, own: Run) -> None:
    done = ask("train", "--profile-step")
    assert done.code == 0, done.err
    for words in ("a step of 8 episodes", "s in 1 process", "play: next tokens", "learn: backward", "step_trace.json"):
        assert words in done.out
    assert not own.workspace.path("checkpoints/rc1").exists()
    assert not own.workspace.path("reports/metrics.jsonl").exists()
    for flags in (("--control", "random"), ("--all-seeds",), ("--no-evaluate",), ("--resume-from", "latest")):
        rejected = ask("train", "--profile-step", *flags)
        assert (rejected.code, "--profile-step: allows at most one --seed" in rejected.err) == (2, True)


def test_policy_that_fails_the_evaluation_is_reported_and_training_resumes(ask: Ask, own: Run, served: Served) -> None:
    served(own.workspace.root)
    done = ask("train")
    assert done.code == 2, done.err
    assert max(len(line) for line in done.out.splitlines() if line[:1] in "┏┃┡│└" or " ── " in line) <= 100
    for words in ("success, asking needed", "ppo_eval", "checkpoints/rc1/step_00004", "warm start", "the checkpoints"):
        assert words in done.out
    verdict, reason, advice, report, following = done.out.splitlines()[-5:]
    assert verdict == f"fail: training of seed {own.config.seeds[0]}, ppo_eval" and reason.startswith("  ppo_eval: ")
    assert advice.startswith("what to do: ") and report.startswith(f"report: {own.workspace.root}/reports/ppo_eval_")
    assert following.startswith("next, with other settings, as a new run: rc1 preflight --config ")
    assert "train: 4/4" in done.err and "Loading weights" not in done.err
    assert packages(own) == 1
    assert own.workspace.path("reports/metrics.jsonl").is_file()
    report = read_json(own.workspace.path("reports/train.json"))
    assert report["state"] == "GatesFailed"

    again = ask("train", "--resume-from", "checkpoints/rc1/latest", "--no_evaluate", "--json")
    body = json.loads(again.out)
    assert (again.code, body["state"]) == (0, "PolicyTrained"), again.err
    assert (body["evaluation"], body["failpack"]) == (None, None), "the report of an earlier run is not shown again"
    (one,) = body["training"]["runs"]
    assert one["sha256"] == fingerprint(own.workspace.path("checkpoints/rc1/step_00004"))


def test_fault_during_training_exits_1_with_report_and_debug_bundle(ask: Ask, own: Run, served: Served) -> None:
    served(own.workspace.root)
    own.workspace.path("reports/metrics.jsonl").mkdir()
    done = ask("train", "--no-evaluate")
    assert done.code == 1
    assert "FATAL: " in done.err
    (report,) = own.workspace.path("reports").glob("ERROR_*.json")
    assert read_json(report)["kind"] == "IsADirectoryError"
    assert packages(own) == 1


def test_small_local_configuration_trains_without_a_ticket_and_resumes(rc1: Rc1, tmp_path: Path) -> None:
    base = write_base(tmp_path / "base")
    place = ("--config", "configs/train_local.yaml", "--workspace", str(tmp_path / "place"))
    call = ("train", *place, *settings((*SMALL, f"model.base={base}")))
    done = rc1(*call, "--json")
    body = json.loads(done.out)
    assert (done.code, body["step"]) == (0, 2), done.err
    assert (tmp_path / "place" / body["checkpoint"]).is_dir()
    # --resume is the flag of the original launcher.
    on = rc1(*call, "--set", "run.max_steps=3", "--resume", "checkpoints/local/latest")
    assert on.code == 0, on.err
    assert "step 3" in on.out and "resumed from step_00002" in on.out


def test_small_local_configuration_is_verified_before_training(rc1: Rc1, tmp_path: Path) -> None:
    config = ("--config", "configs/train_local.yaml", "--workspace", str(tmp_path))
    done = rc1("config", "verify", *config)
    assert done.code == 0, done.err
    assert "max_steps: 2000" in done.out and "a small local configuration, complete" in done.out
    missing = rc1("config", "verify", *config, "--set", "run.max_steps=0")
    assert (missing.code, "run.max_steps: found '0'" in missing.err) == (2, True), missing.err
    for command in (("config", "verify"), ("train",)):
        played = rc1(*command, *config, "--set", "engine.name=trl_dpo")
        assert (played.code, "engine.name: trl_dpo compares several" in played.err) == (2, True), played.err
    assert not (tmp_path / "data").exists(), "no data is written for a configuration that cannot be trained"
