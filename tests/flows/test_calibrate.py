"""The calibration as a flow: adopted weights, failing stages, output, and when the preflight runs it."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prefect import State
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterStartTime
from prefect.client.schemas.sorting import FlowRunSort

from flows.calibrate import calibrate
from flows.preflight import preflight
from rc1_lib.calibration import shadow_checks
from rc1_lib.calibration.stages import REPORT, STAGES
from rc1_lib.config.judge import BASELINE_PATH
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import BY_NAME, evaluate
from rc1_lib.preflight.round_files import PASSED
from rc1_lib.preflight.ticket import TICKET, read_ticket, verify_ticket
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import read_json
from tests.cli.conftest import NARROW, call, serving
from tests.conftest import without_baseline
from tests.judge_server import Behaviour, running
from tests.shares import share

from .conftest import keep_gates
from .shown import artifacts, statuses, task_runs
from .trainings import Ended

# The stages' verdicts use point values: few resamples only widen the intervals.
QUICK = ("gates.shared.resamples=50", "calibration.boot=20")
Only = Callable[..., None]
NAMES = [stage.name for stage in STAGES]
PRE_RUN_REPORT = "reports/shadow_run_pre_run_check.json"
KEY = "sk-planted-1b5c0d9e8f7a"


def copied(run: Run, root: Path, *overrides: str, weights: bool = True) -> Run:
    """A copy of a run's workspace with stored replies, with or without weights, which is quick to calibrate."""
    ignored = shutil.ignore_patterns() if weights else shutil.ignore_patterns("weights.json*")
    shutil.copytree(run.workspace.root, root, ignore=ignored)
    made = open_run(profile="local", workspace=root, overrides=(*run.overrides, *QUICK, *overrides))
    assert weights_file(made).exists() is weights
    return made


def ended(flow: Callable[..., Any], run: Run, **parameters: Any) -> State[Any]:
    """Run a flow on a run's workspace, with its overrides, by default on existing files."""
    chosen = {"build": "never", "overrides": list(run.overrides), "workspace": str(run.workspace.root)}
    state: State[Any] = flow(**{**chosen, **parameters}, return_state=True)
    return state


def weights_file(run: Run) -> Path:
    return run.workspace.path(run.config.weights)


def stage_states(state: State[Any]) -> dict[str, str | None]:
    """Stage -> the name of its task run's state, in the order of the runs."""
    return {run.name: run.state_name for run in task_runs(state) if run.name in NAMES}


@dataclass(frozen=True)
class Shown(Ended):
    """A flow that a command ran in a terminal of 80 columns, with its output."""

    code: int
    out: str
    err: str


def last_state() -> State[Any]:
    """The final state of the last flow run that began; planned runs sort before it."""
    begun = FlowRunFilter(start_time=FlowRunFilterStartTime(is_null_=False))
    with get_client(sync_client=True) as client:
        (last,) = client.read_flow_runs(flow_run_filter=begun, sort=FlowRunSort.START_TIME_DESC, limit=1)
    assert last.state is not None
    return last.state


@pytest.fixture(scope="module")
def passed_calibration(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """`rc1 calibrate` on a workspace without weights. Read-only."""
    run = copied(built, tmp_path_factory.mktemp("calibrated") / "workspace", weights=False)
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, serving() as serve, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("TTY_COMPATIBLE", "1")
        patch.setenv("COLUMNS", str(NARROW))
        serve(run.workspace.root)
        settings = [part for override in run.overrides for part in ("--set", override)]
        code = call("calibrate", "--workspace", str(run.workspace.root), *settings)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    return Shown(run, last_state(), code, shown, err.getvalue())


@pytest.fixture(scope="module")
def preflighted(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A preflight of a workspace without weights; gates that do not depend on them always pass. Read-only."""
    run = copied(built, tmp_path_factory.mktemp("preflighted") / "workspace", weights=False)
    with pytest.MonkeyPatch.context() as patch:
        keep_gates(patch, "weights", "overclar_ablation", "reward_hacking", "integrity", "shadow_run", trivial=BY_NAME)
        return Ended(run, ended(preflight, run, build="auto"))


def test_passed_stages_adopt_weights_that_pass_their_gate(passed_calibration: Ended) -> None:
    run, state = passed_calibration.run, passed_calibration.state
    assert (state.is_completed(), state.name) == (True, "WeightsAdopted"), state.message
    assert f"5 of 5 stages passed; weights: {run.config.weights}" in str(state.message)
    report = read_json(run.workspace.path(read_json(weights_file(run))["report"]["path"]))
    assert read_json(weights_file(run))["weights"] == report["weights"]
    assert evaluate("weights", Evidence(run), 1).status is Status.PASSED


@pytest.fixture(params=share(["preflighted", "passed_calibration"], "preflighted"))
def calibrated(request: pytest.FixtureRequest) -> Ended:
    """A passed calibration: that of a preflight, or that of the command."""
    found: Ended = request.getfixturevalue(request.param)
    return found


def test_every_stage_is_a_task_run_named_by_its_verdict(calibrated: Ended) -> None:
    assert stage_states(calibrated.state) == dict.fromkeys(NAMES, "GatePassed")
    assert "adopt weights" in [run.name.rsplit("-", 1)[0] for run in task_runs(calibrated.state)]


def test_ui_shows_every_check_and_the_pictures_of_every_stage(calibrated: Ended) -> None:
    shown = artifacts(calibrated.state)
    table = shown["rc1-calibration-gates"]
    assert table.type == "table"
    assert "5 of 5 stages passed" in str(table.description)
    assert all(f'"{name}"' in str(table.data) for name in NAMES)
    for name, pictures in zip(NAMES, (2, 1, 1, 0, 2), strict=True):
        card = shown[f"rc1-{name.replace('_', '-')}"]
        assert card.type == "markdown"
        assert str(card.data).count("(data:image/png;base64,iVBOR") == pictures


def test_failed_stage_stops_the_calibration_keeps_the_weights_and_revokes_the_ticket(
    preflighted: Ended, tmp_path: Path
) -> None:
    run = copied(preflighted.run, tmp_path / "workspace", "gates.calibration.min_improve_pct=1000")
    before = weights_file(run).read_bytes()
    state = ended(calibrate, run)
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    assert "calibration: stage 2 of 5 failed: calibration (" in str(state.message)
    assert str(state.message).endswith("; not judged: reward_hacking, overclar_ablation, shadow_run")
    assert stage_states(state) == {"shadow_baseline": "GatePassed", "calibration": "GateFailed"}
    stages = read_json(run.workspace.path(REPORT))["stages"]
    assert [one["gate"]["status"] for one in stages] == ["passed", "failed", *["not judged"] * 3]
    assert "'calibration', which failed" in stages[3]["gate"]["waits_for"]
    assert str(artifacts(state)["rc1-calibration-gates"].data).count('"not judged"') == 3
    assert weights_file(run).read_bytes() == before
    assert len(list(run.workspace.path("reports").glob("calibration_report_*_refused.json"))) == 1
    assert "stage 2 of 5" in read_ticket(run)["revoked"]["reason"]


def test_failed_calibration_stops_judge_calls_and_the_key_appears_in_no_artifact(
    built: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_gates: Only
) -> None:
    only_gates("judge_probe", "anti_simulation", "judge_stability")
    monkeypatch.setattr(shadow_checks, "MIN_OUTCOMES", 1000)
    monkeypatch.setenv("SCORER_API_KEY", KEY)
    with running(Behaviour(api_key=KEY)) as server:
        run = copied(
            built, tmp_path / "workspace", "judge.provider=openai", f"judge.base_url={server.base_url}",
            "judge.model=rc1-test-double-1", "judge.samples=1", "judge.limits.rps=500",
            "gates.waivers={judge_agreement: no labels yet}", weights=False,
        )  # fmt: skip
        without_baseline(run)
        state = ended(preflight, run, build="auto")
        asked = server.stats().answered
    assert asked == run.config.shadow.n, "only the shadow set was judged; no probe ran"
    assert stage_states(state) == {"shadow_baseline": "GateFailed"}
    judged = statuses(read_json(run.workspace.path(PASSED[1])))
    assert (judged["judge_probe"], judged["anti_simulation"]) == ("not judged", "not judged")
    assert not run.workspace.path(BASELINE_PATH).exists()
    assert judged["judge_stability"] == "error", "one sample per dialogue has no variance"
    shown = artifacts(state)
    assert KEY not in str(state.message) + "".join(str(artifact) for artifact in shown.values())
    files = [path for path in run.workspace.root.rglob("*") if path.is_file()]
    assert any(path.suffix == ".sqlite" for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_preflight_without_weights_calibrates_first(preflighted: Ended) -> None:
    run, state = preflighted.run, preflighted.state
    assert state.name == "TicketIssued", state.message
    assert stage_states(state) == dict.fromkeys(NAMES, "GatePassed")
    assert statuses(read_json(run.workspace.path(PASSED[1])))["weights"] == "passed"
    assert verify_ticket(run)["profile"] == "local"


def test_shadow_run_below_its_rank_correlation_fails_round_2(
    preflighted: Ended, tmp_path: Path, only_gates: Only
) -> None:
    only_gates("shadow_run")
    run = copied(preflighted.run, tmp_path / "workspace", "gates.shadow_run.min_spearman=0.99")
    run.workspace.path(TICKET).unlink()
    state = ended(preflight, run, rounds=[2])
    assert (state.is_failed(), state.name) == (True, "GatesFailed")
    assert "shadow_run (spearman is 0." in str(state.message)
    assert read_json(run.workspace.path(PRE_RUN_REPORT))["pass"] is False
    assert not run.workspace.path(TICKET).exists()


def test_fresh_weights_are_not_calibrated_again(preflighted: Ended, tmp_path: Path, only_gates: Only) -> None:
    only_gates("weights")
    run = copied(preflighted.run, tmp_path / "workspace")
    before = weights_file(run).read_bytes()
    state = ended(preflight, run, build="auto", rounds=[1])
    assert state.name == "RoundsPassed", state.message
    assert "shadow_baseline" not in stage_states(state)
    assert weights_file(run).read_bytes() == before
