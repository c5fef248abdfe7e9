"""The preflight from the command line: verdict, tables, ticket and debug bundle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import read_json
from tests.flows.conftest import keep_gates

from .bad_inputs import TICKET, ticket
from .conftest import SMALL, Rc1, Served, settings

OPEN = (
    *SMALL, "--set", "gates.resources.min_free_gb=0", "--set", "gates.git.require_commit=false",
    "--set", "calibration.boot=20", "--set", "gates.shared.resamples=100",
)  # fmt: skip
"""The gates ask about the data here, not about the machine that runs the tests."""


def test_ticket_is_issued_verified_and_revoked(
    rc1: Rc1, built: Run, tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With existing files and few gates, since other tests check the gates."""
    root = tmp_path / "workspace"
    shutil.copytree(built.workspace.root, root)
    served(root)
    keep_gates(monkeypatch, "length")
    check_ticket(rc1, ("--workspace", root, *settings(built.overrides)), "--build", "never")


def check_ticket(rc1: Rc1, place: tuple[Any, ...], *flags: str) -> None:
    """Have a preflight issue a ticket, and run every command about tickets on it."""
    done = rc1("preflight", *place, *flags, "--json")
    body = json.loads(done.out)
    assert done.code == 0, (body, done.err)
    assert [report["round"] for report in body["rounds"]] == ["round1", "round2"]
    assert body["ticket"]["profile"] == "local"
    assert body["ticket"]["files"]["judge_baseline"]["path"] == "data/judge/baseline/judge_baseline.json"
    assert body["failpack"] is None

    assert "pass: ticket valid" in rc1("ticket", "verify", *place).out
    assert "configuration differs" in rc1("ticket", "verify", *place, "--set", "pool.seed=1").err
    assert rc1("ticket", "revoke", *place[:2], "--reason", "a test").code == 0
    rejected = rc1("ticket", "verify", *place)
    assert rejected.code == 2
    assert "revoked" in rejected.err


def test_failed_round_exits_2_with_its_failing_check_and_a_debug_bundle(
    rc1: Rc1, workspace: Path, served: Served
) -> None:
    served(workspace)
    done = rc1("round1", "--workspace", workspace, *OPEN, "--set", "gates.length.min_len=300", "--build", "never")
    assert done.code == 2
    assert "round 1: failed" in done.out
    assert "length: shortest is" in done.out
    assert done.out.index("differ from the published ones") < done.out.index("length: shortest is"), (
        "failures come last"
    )
    verdict, *failed, report, following = done.out.splitlines()[-5:]
    assert verdict.startswith("fail: round 1, ") and "length" in verdict
    assert failed[0].startswith("  weights: ") and failed[-1].endswith(" more above")
    assert report == f"report: {workspace}/reports/preflight/round1.json"
    recorded = workspace / "reports/config_effective.yaml"
    assert following == f"next, once that is fixed: rc1 round1 --config {recorded} --workspace {workspace}"
    assert "reports/preflight/round1_length_offenders.jsonl" in done.out
    report = json.loads((workspace / "reports/preflight/round1.json").read_text(encoding="utf-8"))
    changed = report["thresholds_changed"]
    assert {"key": "gates.length.min_len", "value": 300, "published": 64} in changed
    line = f"{len(changed)} settings differ from the published ones: reports/preflight/round1.json"
    assert done.out.count("published") == 1 and line in done.out
    assert len(list((workspace / "reports/rc1").glob("FAIL_*.tgz"))) == 1
    assert max(len(line) for line in done.out.splitlines() if line[:1] in "┏┃┡│└") <= 100


def test_no_recorded_setting_keeps_a_ticket_valid(rc1: Rc1, tmp_path: Path) -> None:
    ticket()(tmp_path)
    open_run(workspace=tmp_path, overrides=["judge.base_url=https://example.org/v1"]).write_effective_config()
    assert rc1("ticket", "revoke", "--workspace", tmp_path, "--reason", "a test").code == 0
    assert read_json(tmp_path / TICKET)["revoked"]["reason"] == "a test"
