"""The judge's gates in the flow with a live judge over loopback: both rounds, their calls, and secrecy of the key."""

from __future__ import annotations

import os
import re
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect import State
from prefect.blocks.system import Secret
from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL, PREFECT_LOGGING_TO_API_ENABLED, temporary_settings

from flows.calibrate import calibrate
from rc1_lib.calibration.judge_baseline import record_baseline
from rc1_lib.errors import TicketError
from rc1_lib.failpack import write_failpack
from rc1_lib.judge.judge import open_store
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.ticket import read_ticket, verify_ticket
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import read_json
from tasks.keys import SECRET, provide_scorer_key
from tests.conftest import without_baseline
from tests.judge_server import Behaviour, JudgeServer, running

KEY = "sk-planted-6f0e1d2c3b4a"
Start = Callable[..., State[Any]]
Only = Callable[..., None]
JUDGES = ("judge_probe", "anti_simulation", "judge_stability")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    monkeypatch.setenv("SCORER_API_KEY", KEY)
    with running(Behaviour(api_key=KEY)) as running_server:
        yield running_server


def live(server: JudgeServer, *overrides: str) -> tuple[str, ...]:
    # The double's grades are unrelated to success, so weights calibrated on them would fail.
    reason = "made-up grades order nothing"
    waived = (
        f"gates.waivers={{git: no commit here, weights: {reason}, overclar_ablation: {reason}, shadow_run: {reason}, "
        f"judge_agreement: {reason}}}"
    )
    return (
        "judge.provider=openai", f"judge.base_url={server.base_url}", "judge.model=rc1-test-double-1",
        "judge.limits.rps=400", "gates.probe.require_billed=true", waived, *overrides,
    )  # fmt: skip


def verdicts(run: Run, number: int) -> dict[str, dict[str, Any]]:
    return {gate["name"]: gate for gate in read_json(run.workspace.path(PASSED[number]))["gates"]}


def test_both_rounds_call_the_judge_and_a_changed_judge_revokes_the_ticket(
    fresh_copy: Callable[..., Run], run_flow: Start, server: JudgeServer, only_gates: Only
) -> None:
    only_gates(*JUDGES, "judge_drift")
    run = fresh_copy(*live(server, "judge.baseline.n=30"))
    record_baseline(without_baseline(run))
    recorded = server.stats().answered
    state = run_flow(run)
    assert state.name == "TicketIssued", state.message
    for number in (1, 2):
        gates = verdicts(run, number)
        assert {gates[name]["status"] for name in JUDGES} == {"passed"}
    probed = 2 * run.config.gates.probe.n * run.config.judge.samples
    assert server.stats().answered - recorded == probed
    with open_store(run) as store:
        assert len(store.log()) == probed + 30 * run.config.judge.samples

    server.behaviour, answered = Behaviour(api_key=KEY, shift=-0.1), server.stats().answered
    state = run_flow(run, rounds=[1], refresh=True, recheck=True, ticket=False)
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    cause = "nightly: 1 of 1 gates failed: judge_drift (answered: medians moved by"
    assert cause in str(state.message) and cause in read_ticket(run)["revoked"]["reason"], state.message
    with pytest.raises(TicketError, match=re.escape(cause)):
        verify_ticket(run)
    assert server.stats().answered - answered == 0.5 * probed + 30 * run.config.judge.samples


def test_unattended_flow_rejects_judge_costs_above_the_limit(
    fresh_copy: Callable[..., Run], run_flow: Start, server: JudgeServer
) -> None:
    run = fresh_copy(
        *live(server, "judge.baseline.n=30", "judge.prices={input: 1, output: 1}", "judge.ask_above_usd=0.01")
    )
    record_baseline(without_baseline(run))
    asked = server.stats().requests
    calibration = calibrate(overrides=list(run.overrides), workspace=str(run.workspace.root), return_state=True)
    for state in (run_flow(run, build="auto"), run_flow(run, build="never"), calibration):
        assert (state.is_failed(), state.name) == (True, "Refused"), state.message
        assert "judge.ask_above_usd is 0.01" in str(state.message)
    assert server.stats().requests == asked


@pytest.mark.parametrize(
    ("behaviour", "failed"),
    [
        (Behaviour(constant_reply=True, api_key=KEY), {"judge_probe", "anti_simulation"}),
        (Behaviour(noise_sd=0.4, api_key=KEY), {"judge_stability"}),
    ],
)
def test_cheating_or_noisy_judge_fails_its_gate_and_ends_the_run(
    behaviour: Behaviour, failed: set[str], fresh_copy: Callable[..., Run], run_flow: Start, server: JudgeServer,
    only_gates: Only,
) -> None:  # fmt: skip
    only_gates(*JUDGES)
    server.behaviour = behaviour
    run = fresh_copy(*live(server))
    state = run_flow(run)
    assert state.name == "GatesFailed"
    gates = verdicts(run, 1)
    assert {name for name in JUDGES if gates[name]["status"] != "passed"} == failed
    assert not run.workspace.path(PASSED[2]).exists()


def test_key_quoted_in_a_judge_error_appears_in_no_file_or_database(
    fresh_copy: Callable[..., Run], run_flow: Start, server: JudgeServer, only_gates: Only
) -> None:
    only_gates(*JUDGES)
    server.behaviour = Behaviour(api_key="another-key-altogether")  # its 401 quotes the key that it was sent
    run = fresh_copy(*live(server))
    with temporary_settings({PREFECT_LOGGING_TO_API_ENABLED: True}):
        state = run_flow(run)
    assert state.name == "GatesFailed"
    assert "judge_probe" in str(state.message)
    assert KEY not in str(state.message) + repr(state)
    pack = write_failpack(run)
    places = [path for path in run.workspace.root.rglob("*") if path.is_file()]
    with tarfile.open(pack) as archive:
        packed = [archive.extractfile(member) for member in archive if member.isfile()]
        assert packed
        assert [stream.name for stream in packed if stream is not None and KEY.encode() in stream.read()] == []
    assert [path for path in places if KEY.encode() in path.read_bytes()] == []
    assert KEY not in prefect_database()


def test_judge_key_is_read_from_a_prefect_secret(
    fresh_copy: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fresh_copy("judge.provider=openai", "judge.model=any")
    monkeypatch.setenv("SCORER_API_KEY", "")
    provide_scorer_key(run)
    assert os.environ["SCORER_API_KEY"] == ""
    Secret(value=KEY).save(SECRET, overwrite=True)
    try:
        provide_scorer_key(run)
        assert os.environ["SCORER_API_KEY"] == KEY
        assert KEY not in prefect_database()  # it is kept encrypted
    finally:
        Secret.delete(SECRET)


def prefect_database() -> str:
    """Every row of every table of Prefect's database, as text: flow runs, parameters, states, logs, artifacts."""
    path = Path(str(PREFECT_API_DATABASE_CONNECTION_URL.value()).partition(":///")[2])
    with sqlite3.connect(path) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return "\n".join(str(db.execute(f'SELECT * FROM "{table}"').fetchall()) for table in tables)
