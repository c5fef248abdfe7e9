"""The preflight flow: the ticket it issues after passing, where it stops after a failure, and when it revokes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prefect import State
from prefect.artifacts import Artifact

from flows.preflight import preflight
from rc1_lib.calibration.judge_baseline import ASKED_STORE
from rc1_lib.config.judge import BASELINE_PATH
from rc1_lib.config.thresholds import ResourcesGate
from rc1_lib.errors import TicketError
from rc1_lib.gates.gate_list import BY_NAME, gates_of_round
from rc1_lib.gates.resources import resources_gate
from rc1_lib.judge.judge import open_store
from rc1_lib.preflight.nights import NIGHTS
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.ticket import TICKET, read_ticket, verify_ticket
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import read_json
from rc1_lib.workspace.folder import holding
from tasks.reports import NIGHTLY
from tests.once import copied

from .shown import statuses

Start = Callable[..., State[Any]]
Only = Callable[..., None]
NIGHTLY_PARAMETERS = {"build": "never", "refresh": True, "recheck": True, "ticket": False}


def repeat_rows(path: Path, count: int) -> None:
    """Append copies of the file's first rows."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, *lines[:count]]))


def nights(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run.workspace.path(NIGHTS).read_bytes().splitlines()]


def asked(run: Run) -> list[str]:
    """The outcomes of the calls about the judge's baseline."""
    if not run.workspace.path(ASKED_STORE).exists():
        return []
    with open_store(run, ASKED_STORE) as store:
        return store.log()["outcome"].to_list()


def test_two_passed_rounds_issue_a_valid_ticket(passed_preflight: tuple[Run, State[Any]]) -> None:
    run, state = passed_preflight
    assert (state.is_completed(), state.name) == (True, "TicketIssued"), state.message
    assert verify_ticket(run)["profile"] == "local"


def test_waived_gates_are_shown_as_waived_everywhere(passed_preflight: tuple[Run, State[Any]]) -> None:
    run, state = passed_preflight
    for number in (1, 2):
        assert statuses(read_json(run.workspace.path(PASSED[number])))["anti_simulation"] == "waived"
    assert "anti_simulation" in read_ticket(run)["waived"]
    assert "waived: git, anti_simulation" in str(state.message)
    card = Artifact.get("rc1-round1-gates")
    assert card is not None and "waived" in str(card.data)


def test_damaged_pool_stops_the_preflight_after_round_1(
    fresh_copy: Callable[..., Run], run_flow: Start, only_gates: Only
) -> None:
    only_gates("duplicates", "integrity", "weights")
    run = fresh_copy()
    repeat_rows(run.workspace.path(run.config.pool.path), 60)
    state = run_flow(run)
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    assert "duplicates (" in str(state.message) and "integrity (" in str(state.message)
    report = read_json(run.workspace.path(PASSED[1]))
    assert report["pass"] is False
    assert [gate["name"] for gate in report["gates"]] == [spec.name for spec in gates_of_round(1)]
    assert statuses(report)["weights"] == "passed", "the other gates are still evaluated"
    assert not list(run.workspace.path("reports/preflight").glob("round2*"))
    assert not run.workspace.path(TICKET).exists()


def test_failed_gates_fail_the_flow_and_revoke_an_earlier_ticket(preflighted_copy: Run, run_flow: Start) -> None:
    weights = preflighted_copy.workspace.path(preflighted_copy.config.weights)
    weights.write_text('{"correctness": 1.5}')
    state = run_flow(preflighted_copy)
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    assert f"round 1: 3 of {len(gates_of_round(1))} gates failed: weights" in str(state.message)
    assert "weights" in read_ticket(preflighted_copy)["revoked"]["reason"]


def test_failed_gates_revoke_the_ticket_before_they_are_reported(
    preflighted_copy: Run, run_flow: Start, only_gates: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_gates()
    full = replace(BY_NAME["resources"], gate=lambda _, __: resources_gate(0.0, ResourcesGate(min_free_gb=1)))
    monkeypatch.setitem(BY_NAME, "resources", full)

    def lost(*_: Any, **__: Any) -> None:
        raise ConnectionError("the server is gone")

    monkeypatch.setattr("flows.preflight.report_round", lost)
    state = run_flow(preflighted_copy, **NIGHTLY_PARAMETERS, rounds=[1])
    assert state.is_failed() and state.name != "GatesFailed"
    assert "resources" in read_ticket(preflighted_copy)["revoked"]["reason"]


def test_nightly_run_sends_no_key_to_an_address_that_only_the_workspace_names(tmp_path: Path, built: Run) -> None:
    run = copied(built, tmp_path / "workspace")
    theirs = [*run.overrides, "judge.base_url=https://example.org/v1"]
    open_run(workspace=run.workspace.root, overrides=theirs).write_effective_config()
    state = preflight(workspace=str(run.workspace.root), **NIGHTLY_PARAMETERS, return_state=True)
    assert state.name == "Refused" and "no file of a workspace decides where a key is sent" in str(state.message)


def test_nightly_run_confirms_a_ticket_without_changing_its_files(
    preflighted_copy: Run, run_flow: Start, only_gates: Only
) -> None:
    only_gates("judge_drift")
    state = run_flow(preflighted_copy, **NIGHTLY_PARAMETERS, rounds=[1])
    assert state.name == "TicketConfirmed", state.message
    assert str(state.message).endswith("; nightly: 1 of 1 gates passed")
    assert verify_ticket(preflighted_copy)
    report = read_json(preflighted_copy.workspace.path(NIGHTLY))
    assert report["pass"] is True
    (drift,) = report["rounds"]["nightly"]
    assert (drift["name"], drift["status"]) == ("judge_drift", "passed")
    assert drift["evidence"].keys() == {BASELINE_PATH, "configs/judge/v1.yaml"}
    card = Artifact.get("rc1-nightly-gates")
    assert card is not None and "overall: medians moved by" in str(card.data)
    (night,) = nights(preflighted_copy)
    assert (night["outcome"], night["verdict"]) == ("passed", state.message)
    assert night["gates"].keys() == {"round1", "nightly"}
    judge = preflighted_copy.config.judge
    assert asked(preflighted_copy) == ["ok"] * judge.baseline.n * judge.samples, "the judge was called past its store"


def test_nightly_run_calls_no_judge_after_a_failed_round(
    preflighted_copy: Run, run_flow: Start, only_gates: Only, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_gates("judge_drift")
    full = replace(BY_NAME["resources"], gate=lambda _, __: resources_gate(0.0, ResourcesGate(min_free_gb=1)))
    monkeypatch.setitem(BY_NAME, "resources", full)
    state = run_flow(preflighted_copy, **NIGHTLY_PARAMETERS, rounds=[1])
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    assert "round 1: 1 of" in str(state.message) and "resources (" in str(state.message)
    (drift,) = read_json(preflighted_copy.workspace.path(NIGHTLY))["rounds"]["nightly"]
    assert drift["status"] == "not judged"
    assert "round 1, which failed" in drift["waits_for"]
    (night,) = nights(preflighted_copy)
    assert (night["outcome"], asked(preflighted_copy)) == ("failed", [])
    assert night["gates"]["nightly"] == {"judge_drift": {"status": "not judged", "figures": {}}}


def test_rejected_nightly_run_is_recorded(preflighted_copy: Run, run_flow: Start) -> None:
    with holding(preflighted_copy.workspace, "a training"):
        assert run_flow(preflighted_copy, **NIGHTLY_PARAMETERS).name == "Refused"
    assert run_flow(preflighted_copy, **NIGHTLY_PARAMETERS, overrides=["nonsense=1"]).name == "Refused"
    busy, wrong = nights(preflighted_copy)
    assert busy["outcome"] == wrong["outcome"] == "refused"
    assert "a training" in busy["verdict"] and busy["config_sha256"] is not None
    assert "nonsense" in wrong["verdict"] and wrong["config_sha256"] is None


def test_nightly_run_that_cannot_read_its_key_revokes_nothing(
    preflighted_copy: Run, run_flow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("RC1_TICKET_KEY", str(preflighted_copy.workspace.root / "not mounted"))
        state = run_flow(preflighted_copy, **NIGHTLY_PARAMETERS)
    assert (state.name, "RC1_TICKET_KEY" in str(state.message)) == ("Refused", True)
    assert verify_ticket(preflighted_copy)["revoked"] is None


def test_nightly_run_revokes_the_ticket_when_one_byte_of_the_pool_changed(
    preflighted_copy: Run, run_flow: Start
) -> None:
    pool = preflighted_copy.workspace.path(preflighted_copy.config.pool.path)
    body = bytearray(pool.read_bytes())
    body[-3] ^= 1
    pool.write_bytes(bytes(body))
    state = run_flow(preflighted_copy, **NIGHTLY_PARAMETERS)
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    assert f"{preflighted_copy.config.pool.path} has changed" in str(state.message)
    with pytest.raises(TicketError, match="revoked"):
        verify_ticket(preflighted_copy)
    (night,) = nights(preflighted_copy)
    assert (night["outcome"], night["verdict"], night["gates"]) == ("failed", state.message, {})


def test_round_2_alone_issues_no_ticket(preflighted_copy: Run, run_flow: Start, only_gates: Only) -> None:
    only_gates()
    for path in (PASSED[1], TICKET):
        preflighted_copy.workspace.path(path).unlink()
    state = run_flow(preflighted_copy, rounds=[2])
    assert (state.is_failed(), state.name) == (True, "Refused")
    assert "round 1 has not passed" in str(state.message)
    assert not preflighted_copy.workspace.path(TICKET).exists()


def test_scheduled_nightly_run_takes_the_recorded_settings(preflighted_copy: Run, only_gates: Only) -> None:
    """The schedule has no settings of its own; the shipped ones would revoke a valid ticket of other settings."""
    only_gates("judge_drift")
    place = str(preflighted_copy.workspace.root)
    state = preflight(workspace=place, **NIGHTLY_PARAMETERS, rounds=[1], return_state=True)
    assert state.name == "TicketConfirmed", state.message
    assert verify_ticket(preflighted_copy)
