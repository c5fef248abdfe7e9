"""Real rows of the public data sets through build, gates, difficulty, both rounds and the ticket."""

from __future__ import annotations

from pathlib import Path

import pytest

from rc1_lib.calibration.stages import evaluate_here, run_stages
from rc1_lib.cli.session import VERIFIED
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.errors import TicketError
from rc1_lib.evidence import Evidence
from rc1_lib.pool.seed import build_seed
from rc1_lib.preflight.issue import issue_ticket
from rc1_lib.preflight.round_report import write_round
from rc1_lib.preflight.ticket import verify_ticket
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import read_manifest
from tests.conftest import SMALL, both_rounds
from tests.environment.replays import check_replay

# A tenth of fewer than 245 real dialogues is too few for the overlap's threshold.
_WHOLE = ("pool.n=600", "shadow.n=245", "calibration.n=600")


@pytest.fixture(scope="module")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """600 rows from the real files, in the mix, at the shipped thresholds."""
    run = open_run(workspace=tmp_path_factory.mktemp("real"), overrides=[*SMALL, *_WHOLE, f"sources.use={shared_data}"])
    build_seed(run)
    write_metrics(run)
    write_balanced(run)
    return run


def test_scripted_expert_replays_every_row_with_the_same_text_and_outcome(real: Run) -> None:
    assert check_replay(real) > 50


def test_public_questions_earn_a_ticket_with_the_verified_outcome_alone(real: Run) -> None:
    """Without judge and weights the other gates pass, and a changed byte invalidates the ticket."""
    run = open_run(workspace=real.workspace.root, overrides=[*real.overrides, *VERIFIED])
    assert {outcome.gate.name: outcome.gate.status for outcome in run_stages(run, evaluate_here)} == {
        "shadow_baseline": Status.NOT_APPLICABLE,
        "calibration": Status.NOT_APPLICABLE,
        "reward_hacking": Status.PASSED,
        "overclar_ablation": Status.PASSED,
        "shadow_run": Status.NOT_APPLICABLE,
    }
    for number, found in both_rounds(Evidence(run)).items():
        write_round(run, number, found)
    ticket = issue_ticket(run)
    assert verify_ticket(run) == ticket
    assert set(ticket["waived"]) <= {"git"} and "weights" in ticket["not_applicable"]
    shadow = Evidence(run).path("shadow")
    body = shadow.read_bytes()
    shadow.write_bytes(body.replace(b"a", b"e", 1))
    try:
        with pytest.raises(TicketError, match="has changed"):
            verify_ticket(run)
    finally:
        shadow.write_bytes(body)


def test_manifest_reports_reused_and_dropped_questions(real: Run) -> None:
    manifest = read_manifest(real.workspace, real.config.pool.path)
    assert manifest is not None
    assert manifest["report"]["rows"] == {"gsm8k": 150, "hotpotqa": 270, "strategyqa": 180}
    assert manifest["report"]["second_uses_of_a_question"] > 0, "300 HotpotQA rows cannot fill 270 + 110 once each"
    assert "gsm8k: solution longer than max_turns" in manifest["report"]["dropped_questions"]
    assert manifest["skipped_records"]["gsm8k"]["no calculator marks"] > 0
