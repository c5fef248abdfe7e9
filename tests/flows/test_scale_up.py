"""The scale-up as a flow: it grows while gates pass, stops at a failure, resumes after a kill."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from prefect import State
from prefect.artifacts import Artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.settings import PREFECT_API_URL

from flows.scale_up import scale_up
from rc1_lib.errors import RC1Error
from rc1_lib.preflight.nights import NIGHTS, Night, NightOutcome
from rc1_lib.preflight.ticket import TICKET, read_ticket
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.scale_up.conditions import check_grown, check_may_grow
from rc1_lib.scale_up.report import REPORT
from rc1_lib.scale_up.sizes import rows_artifact, sized
from rc1_lib.workspace.artifacts import read_json
from tests.conftest import Verdicts
from tests.flows.workers import at_the_server
from tests.forks import this_interpreter
from tests.ticketed import copy_with_base, ticketed

WHOLE: Mapping[str, Sequence[GateResult]] = {"round1": (), "round2": (), "nightly": ()}
SIZES = ("scale_up.sizes=[600, 1200]",)


@pytest.fixture
def ready(built: Run, verdicts: Verdicts, tmp_path: Path) -> Callable[..., Run]:
    """Makes a workspace that may grow: a ticket under these settings, and a nightly that has just passed."""

    def make(*overrides: str) -> Run:
        root = tmp_path / "workspace"
        copy_with_base(built, root)
        run = ticketed(root, built, verdicts, *overrides)
        with Night("last night", run.workspace, run) as night:
            night.ticket_sha256 = read_ticket(run)["ticket_sha256"]
            night.ended(NightOutcome.PASSED, "the ticket is valid", WHOLE)
        return run

    return make


def parameters(run: Run) -> dict[str, Any]:
    return {"overrides": list(run.overrides), "workspace": str(run.workspace.root)}


def start(run: Run) -> State[Any]:
    state: State[Any] = scale_up(**parameters(run), return_state=True)
    return state


def as_a_process(server: str, storage: str, workspace: str, *overrides: str) -> None:
    """Scale up as a worker's process does."""
    with at_the_server(server, storage):
        state: State[Any] = scale_up(workspace=workspace, overrides=list(overrides), return_state=True)
    sys.exit(0 if state.is_completed() else 1)


def tasks_of(state: State[Any]) -> dict[str, str]:
    """Task run -> the name of its state."""
    of_flow = FlowRunFilter(id=FlowRunFilterId(any_=[state.state_details.flow_run_id]))
    deadline, before = time.monotonic() + 30, -1
    while True:  # events reach the server after the flow has ended
        with get_client(sync_client=True) as client:
            found = client.read_task_runs(flow_run_filter=of_flow)
        names = {run.name: run.state.name or "" for run in found if run.state is not None and run.state.is_final()}
        reported = "scale-up report" in {name.rpartition("-")[0] for name in names}
        if (reported and len(names) == len(found) == before) or time.monotonic() > deadline:
            return names
        before = len(found)
        time.sleep(0.2)


def test_scale_up_killed_between_sizes_resumes_after_the_passed_size(ready: Callable[..., Run], tmp_path: Path) -> None:
    run = ready(*SIZES)
    place = (PREFECT_API_URL.value(), tmp_path / "storage", run.workspace.root, *run.overrides)
    flow = this_interpreter(tmp_path / "forks").start("tests.flows.test_scale_up.as_a_process", *place)
    while not list(run.workspace.root.glob("reports/rc1/scale_up_600_*.sha256")):  # written last
        assert flow.poll() is None, f"the flow ended before it was killed: {flow.read_output()}"
        time.sleep(0.01)
    assert flow.kill() == -signal.SIGKILL

    state = start(run)
    assert (state.name, state.is_completed()) == ("ScaledUp", True), state.message
    names = tasks_of(state)
    assert (names["size 600"], names["size 1200"]) == ("Cached", "Due")
    assert "diversity, 600" not in names, "passed gates are not evaluated again"
    assert names["judge_stability, 600 again"] == names["growth, 1,200"] == "GatePassed"
    small, whole = (rows_artifact(run, size).path(sized(run, size)) for size in (600, 1200))
    assert set(small.read_bytes().splitlines()) < set(whole.read_bytes().splitlines())
    assert read_json(run.workspace.path(REPORT))["pass"] is True
    card = Artifact.get("rc1-scale-up")
    assert card is not None and "every gate passed at 600, 1,200" in str(card.description)
    in_prod = replace(run, config=run.config.model_copy(update={"profile": "prod"}))
    check_grown(in_prod)
    report = next(run.workspace.root.glob("reports/scale_up_1200_*.json"))
    report.write_bytes(report.read_bytes() + b"\n")
    with pytest.raises(RC1Error, match="have not come through a scale-up"):
        check_grown(in_prod)
    check_grown(run)  # profile local trains without


def no_ticket(run: Run) -> None:
    run.workspace.path(TICKET).unlink()


def no_night(run: Run) -> None:
    run.workspace.path(NIGHTS).unlink()


def failed_night(run: Run) -> None:
    with Night("tonight", run.workspace, run) as night:
        night.ended(NightOutcome.FAILED, "leakage failed")


def night_of_round_1(run: Run) -> None:
    with Night("tonight", run.workspace, run, read_ticket(run)["ticket_sha256"]) as night:
        night.ended(NightOutcome.PASSED, "the ticket is valid", {"round1": ()})


def night_of_another_ticket(run: Run) -> None:
    with Night("tonight", run.workspace, run, "0" * 64) as night:
        night.ended(NightOutcome.PASSED, "the ticket is valid", WHOLE)


def old_night(run: Run) -> None:
    path = run.workspace.path(NIGHTS)
    night = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**night, "ended": "2026-01-01T00:00:00+00:00"}) + b"\n")


def night_without_outcome(run: Run) -> None:
    path = run.workspace.path(NIGHTS)
    night = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({key: night[key] for key in night if key != "outcome"}) + b"\n")


REFUSALS: Sequence[tuple[Callable[[Run], None], str]] = (
    (no_ticket, "there is no ticket"),
    (no_night, "has no nightly with these settings"),
    (failed_night, "leakage failed"),
    (old_night, "expected one of the last day"),
    (night_without_outcome, "'outcome' is missing"),
    (night_of_round_1, "did not judge nightly, round2"),
    (night_of_another_ticket, "checked another ticket"),
)


def test_scale_up_is_refused_without_ticket_and_passed_night(ready: Callable[..., Run]) -> None:
    run = ready(*SIZES)
    check_may_grow(run)
    whole = {path: run.workspace.path(path).read_bytes() for path in (TICKET, NIGHTS)}
    for damage, words in REFUSALS:
        damage(run)
        with pytest.raises(RC1Error, match=words):
            check_may_grow(run)
        for path, content in whole.items():
            run.workspace.path(path).write_bytes(content)
    no_ticket(run)
    state = start(run)
    assert state.name == "Refused" and "there is no ticket" in str(state.message)
    assert not list(run.workspace.root.rglob("*_600*"))


def test_scale_up_stops_at_the_first_failed_gate(ready: Callable[..., Run]) -> None:
    run = ready(*SIZES, "gates.difficulty.turns_max=1")
    state = start(run)
    assert (state.name, state.is_failed()) == ("GatesFailed", True)
    assert "stopped at 600 rows: 1 of 4 gates failed: difficulty (turns, highest" in str(state.message)
    assert "not judged: judge_stability" in str(state.message)
    names = tasks_of(state)
    assert names["difficulty, 600"] == "GateFailed"
    assert not {"judge_stability, 600", "size 1200", "grow to 1200"} & names.keys()
    assert not list(run.workspace.root.glob("reports/scale_up_600_*")), "a failed size is not recorded as passed"
