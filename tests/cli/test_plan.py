"""`plan` from the command line."""

from __future__ import annotations

import json

import pytest

from rc1_lib.cli import main
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json

from .conftest import Rc1, settings
from .test_train import own

__all__ = ["own"]


def test_plan_writes_a_report_and_needs_a_valid_ticket(rc1: Rc1, own: Run) -> None:
    call = ("plan", "--workspace", str(own.workspace.root), *settings(own.overrides))
    done = rc1(*call, "--json")
    body = json.loads(done.out)
    assert (done.code, body["exit_code"], body["seeds"]) == (0, 0, 1), done.err
    assert body.keys() - {"exit_code"} == read_json(own.workspace.path("reports/train_plan.json")).keys()
    assert body["parts"].keys() == {"training", "evaluation"}
    assert all(part["hours"] > 0 and part["judge_calls"] == part["usd"] == 0 for part in body["parts"].values())
    assert not own.workspace.path("checkpoints/rc1").exists()

    revoke_ticket(own, "a test")
    rejected = rc1(*call)
    assert (rejected.code, "the ticket is not valid" in rejected.err) == (2, True)


def test_only_the_first_process_of_a_launcher_runs_a_single_process_command(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[str]()
    monkeypatch.setattr("rc1_lib.cli._leads", lambda: False)
    monkeypatch.setattr("rc1_lib.cli.app.app", lambda arguments, **_: begun.append(arguments[0]))
    for name in ("plan", "train", "doctor", "evaluate", "report"):
        main([name])
    assert begun == ["report"]
