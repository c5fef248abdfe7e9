"""`doctor` from the command line: table and exit codes; it writes nothing, unless it shall try learnability."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rc1_lib.cli.session import WIDTH
from rc1_lib.preflight.ticket import revoke_ticket
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json

from .conftest import Rc1, settings
from .test_train import own

__all__ = ["own"]


def test_doctor_shows_a_table_that_fits_and_writes_nothing(opened: Run, rc1: Rc1, tmp_path: Path) -> None:
    root = opened.workspace.root
    before = sorted(root.rglob("*"))
    done = rc1("doctor", "--workspace", str(root), *settings(opened.overrides))
    assert done.code == 0, done.out
    assert re.search(r"ticket +ok", done.out) and "FAILED" not in done.out
    assert done.out.splitlines()[-1] == "pass: 12 checks, ready to train"
    assert sorted(root.rglob("*")) == before

    elsewhere = tmp_path / "w"  # does not exist
    failed = rc1("doctor", "--workspace", str(elsewhere))
    assert failed.code == 2
    *shown, following = failed.out.splitlines()
    assert max(len(line) for line in shown if not line.startswith("what to do: ")) <= WIDTH
    assert following == f"next, once that is fixed: rc1 doctor --workspace {elsewhere}"
    assert next(line for line in shown if line.startswith("fail: ")).count("ticket") == 1
    assert "there is no ticket" in " ".join(failed.out.split())
    body = json.loads(rc1("doctor", "--workspace", str(elsewhere), "--json").out)
    looks = body["looks"]
    assert (body["exit_code"], looks["ticket"]["failed"], looks["judge"]["failed"]) == (2, True, False)
    assert not elsewhere.exists()


def test_prod_wants_a_scale_up_before_a_training_is_ready_or_its_bill_is_agreed_to(
    rc1: Rc1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = tmp_path / "data/rollouts/rc1_seed.jsonl"
    pool.parent.mkdir(parents=True)
    pool.touch()
    place = ("--profile", "prod", "--workspace", str(tmp_path))
    look = json.loads(rc1("doctor", *place, "--json").out)["looks"]["scale_up"]
    assert look["failed"] and "rc1 scale-up" in look["advice"]
    monkeypatch.setattr("rc1_lib.preflight.ticket.verify_ticket", lambda run: {})  # none of prod can be had here
    done = rc1("train", *place)
    assert done.code == 2 and "have not come through a scale-up" in done.err


def test_learnability_is_tried_on_demand_and_needs_a_valid_ticket(
    rc1: Rc1, own: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rc1_lib.forecast.learnability.PROMPTS", 18)
    call = ("doctor", "--learnability", "--workspace", str(own.workspace.root), *settings(own.overrides), "--json")
    done = rc1(*call)
    look = json.loads(done.out)["looks"]["learnability"]
    # A base trained for seconds solves almost nothing, and twelve held-out prompts show no effect.
    assert (done.code, look["failed"]) == (2, True), done.err
    assert "it failed: " in look["found"] and "rc1 doctor --learnability" in look["advice"]
    assert {"all", "gsm8k", "hard"} <= read_json(own.workspace.path("reports/learnability.json"))["groups"].keys()
    revoke_ticket(own, "a test")
    assert json.loads(rc1(*call).out)["looks"]["learnability"]["advice"] == "fix the ticket first"
