"""`plan` and `learnability` from the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from rc1_lib.cli import main
from rc1_lib.cli.plan import _timed_steps
from rc1_lib.errors import ConfigError
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run
from rc1_lib.training.ranks.processes import gpus_of
from rc1_lib.workspace.artifacts import read_json

from .conftest import Rc1, settings
from .test_train import own

__all__ = ["own"]


def test_plan_writes_a_report_and_needs_a_valid_ticket(rc1: Rc1, own: Run) -> None:
    call = ("plan", "--workspace", str(own.workspace.root), *settings(own.overrides), "--pilot-steps", "2")
    done = rc1(*call, "--json")
    body = json.loads(done.out)
    assert (done.code, body["exit_code"], body["seeds"]) == (0, 0, 1), done.err
    assert body.keys() - {"exit_code"} == read_json(own.workspace.path("reports/train_plan.json")).keys()
    hours = body["parts"]["training"]["hours"]
    assert 0 <= hours["low"] <= hours["value"] <= hours["high"] and hours["value"] > 0
    assert body["parts"]["training"]["gpu_hours"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert body["parts"].keys() == {"training", "evaluation"}
    assert not own.workspace.path("checkpoints/rc1").exists()

    revoke_ticket(own, "a test")
    rejected = rc1(*call)
    assert (rejected.code, "the ticket is not valid" in rejected.err) == (2, True)
    short = rc1(*call[:-1], "1")
    assert short.code == 2 and "pilot-steps" in short.err


def test_learnability_reports_groups_and_a_gate_and_needs_a_valid_ticket(rc1: Rc1, own: Run) -> None:
    call = ("learnability", "--workspace", str(own.workspace.root), *settings(own.overrides))
    done = rc1(*call, "--json")
    body = json.loads(done.out)
    # A base trained for seconds solves almost nothing, and twelve held-out prompts show no effect.
    assert (done.code, body["exit_code"], body["gate"]["status"]) == (2, 2, "failed"), done.err
    assert {"all", "gsm8k", "hard"} <= body["groups"].keys()
    assert own.workspace.path("reports/learnability.json").is_file()
    revoke_ticket(own, "a test")
    rejected = rc1(*call)
    assert (rejected.code, "the ticket is not valid" in rejected.err) == (2, True)


def test_only_the_first_process_of_a_launcher_runs_a_single_process_command(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[str]()
    monkeypatch.setattr("rc1_lib.cli._leads", lambda: False)
    monkeypatch.setattr("rc1_lib.cli.app.app", lambda arguments, **_: begun.append(arguments[0]))
    for name in ("plan", "train", "learnability", "evaluate", "doctor"):
        main([name])
    assert begun == ["doctor"]


@pytest.mark.parametrize("size", [1, 2])
def test_each_process_counts_one_gpu(opened: Run, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    training = opened.config.training.model_copy(update={"shards": 2})
    launched = SimpleNamespace(size=size) if size > 1 else None
    monkeypatch.setattr("rc1_lib.training.ranks.processes.launched_group", lambda: launched)
    assert gpus_of(training) == 0
    monkeypatch.setattr("rc1_lib.training.ranks.processes.get_device", lambda: torch.device("cuda"))
    assert gpus_of(training) == size


@pytest.mark.parametrize(("steps", "asked", "timed"), [(48, None, 4), (3, None, 3), (1, None, 2), (1, 2, 2), (9, 9, 9)])
def test_pilot_is_at_most_as_long_as_training_and_at_least_two_steps(
    opened: Run, steps: int, asked: int | None, timed: int
) -> None:
    run = replace(opened, config=opened.config.model_copy(update={"steps": steps}))
    assert _timed_steps(run, asked) == timed
    with pytest.raises(ConfigError, match=rf"^--pilot-steps: .*99.*{steps}"):
        _timed_steps(run, 99)
