"""Training on the verified outcome alone: gates on the judged score are reported as not applicable."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rc1_lib.calibration.stages import evaluate_here, is_due, run_stages
from rc1_lib.cli.session import VERIFIED
from rc1_lib.config.judge import BASELINE_PATH, STORE_PATH
from rc1_lib.errors import ConfigError, TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import PREFLIGHT, evaluate, not_applicable
from rc1_lib.gates.spec import NIGHTLY
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import write_round
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from tests.conftest import SMALL, Verdicts, both_rounds, copied_pool

ON_SCORE = {
    "weights", "judge_probe", "anti_simulation", "judge_stability", "judge_agreement", "shadow_run", "judge_drift",
}  # fmt: skip


@pytest.fixture(scope="module")
def calibrated(built: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A workspace without weights and judged scores, with a configuration that does not need them."""
    root = copied_pool(built, tmp_path_factory.mktemp("verified") / "workspace")
    run = open_run(profile="local", workspace=root, overrides=(*SMALL, *VERIFIED))
    for path in (run.config.weights, STORE_PATH, BASELINE_PATH):
        run.workspace.path(path).unlink(missing_ok=True)
    assert is_due(run, "auto")
    stages = run_stages(run, evaluate_here)
    assert [one.gate.status for one in stages] == [
        Status.NOT_APPLICABLE, Status.NOT_APPLICABLE, Status.PASSED, Status.PASSED, Status.NOT_APPLICABLE,
    ]  # fmt: skip
    assert not is_due(run, "auto")
    return run


@pytest.fixture
def verified(calibrated: Run, tmp_path: Path) -> Run:
    """A copy that a test may alter."""
    root = shutil.copytree(calibrated.workspace.root, tmp_path / "workspace")
    return open_run(profile="local", workspace=root, overrides=(*SMALL, *VERIFIED))


@pytest.fixture(scope="module")
def rounds(calibrated: Run) -> Verdicts:
    """The verdicts of both rounds, valid for every copy of the workspace."""
    return both_rounds(Evidence(calibrated))


def test_ticket_without_a_judge_lists_the_gates_that_do_not_apply(verified: Run, rounds: Verdicts) -> None:
    for number, results in rounds.items():
        write_round(verified, number, results)
    ticket = issue_ticket(verified)
    assert verify_ticket(verified) == ticket
    assert set(ticket["not_applicable"]) == ON_SCORE - {"judge_drift"}
    assert all("training.reward.judge is 0" in why for why in ticket["not_applicable"].values())
    assert "anti_simulation" not in ticket["waived"], "a gate that does not apply is not waived"
    changed = {one["key"] for one in ticket["thresholds_changed"]}
    assert {"training.reward.judge", "training.reward.success"} <= changed
    assert not {"weights", "judge_spec", "judge_baseline"} & set(ticket["files"])
    assert not verified.workspace.path(verified.config.weights).exists()
    pool = Evidence(verified).path("pool")
    body = pool.read_bytes()
    pool.write_bytes(body[:-2] + b" " + body[-2:])
    with pytest.raises(TicketError, match=r"rc1_seed\.jsonl"):
        verify_ticket(verified)


def test_exactly_the_gates_on_the_judged_score_do_not_apply(built: Run, verified: Run) -> None:
    assert set(not_applicable(verified)) == ON_SCORE
    assert {spec.name for spec in PREFLIGHT if spec.on_score} == ON_SCORE
    assert not_applicable(built) == {}
    assert evaluate("judge_drift", Evidence(verified), NIGHTLY).status is Status.NOT_APPLICABLE


def test_profile_prod_requires_a_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="verified_reward"):
        open_run(profile="prod", workspace=tmp_path, overrides=VERIFIED)
    with pytest.raises(ConfigError, match=r"training\.reward\.success is 0"):
        open_run(profile="prod", workspace=tmp_path, overrides=["training.reward.success=0"])
    why = "gates.not_applicable.verified_reward=answers are verified, and no judge is paid"
    run = open_run(profile="prod", workspace=tmp_path, overrides=(*VERIFIED, why))
    assert "no judge is paid" in not_applicable(run)["weights"]


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (("gates.not_applicable.verified_reward=not needed",), "training.reward.judge is 0.3"),
        ((*VERIFIED, "gates.not_applicable.mix=why not"), "mix"),
        (("gates.waivers.mix='...'",), "a reason in words"),
        (('gates.waivers.mix="ok\\e[2K\\e[1A"',), "one line without control characters"),
        (("gates.waivers.mix='dessap \u202egnitset'",), "one line without control characters"),
    ],
)
def test_contradictory_configuration_is_rejected(overrides: tuple[str, ...], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        open_run(workspace=PROJECT_ROOT, profile="local", overrides=overrides)


def test_profile_prod_allows_a_waiver_only_for_labels(tmp_path: Path) -> None:
    run = open_run(profile="prod", workspace=tmp_path, overrides=["gates.waivers.judge_agreement=no labels yet"])
    assert run.config.gates.waivers == {"judge_agreement": "no labels yet"}
    with pytest.raises(ConfigError, match=r"gates\.waivers: .*anti_simulation.*judge_agreement"):
        open_run(profile="prod", workspace=tmp_path, overrides=["gates.waivers.anti_simulation=please"])
