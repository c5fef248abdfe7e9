"""Real rows of the public data sets through build, gates, difficulty, both rounds and the ticket."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rc1_lib.artifacts import read_manifest
from rc1_lib.calibration.judge_baseline import record_baseline
from rc1_lib.calibration.reward_hacking import attack_reward
from rc1_lib.calibration.stages import STAGES, evaluate_here, run_stages
from rc1_lib.calibration.weight_calib import weight_calib
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.errors import RC1Error
from rc1_lib.evidence import Evidence
from rc1_lib.pool.seed import build_seed
from rc1_lib.preflight.gates import evaluate, gates_of_round
from rc1_lib.preflight.rounds import write_round
from rc1_lib.preflight.ticket import issue_ticket
from rc1_lib.records import Status
from rc1_lib.run import Run, open_run
from tests.conftest import SMALL
from tests.environment.replays import check_replay

# A tenth of fewer than 245 real dialogues is too few for the overlap's threshold.
_WHOLE = ("pool.n=600", "shadow.n=245", "calibration.n=600")


RED = (Status.FAILED, Status.ERROR)


@pytest.fixture(scope="module")
def real(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """600 rows from the real files, in the mix, at the shipped thresholds."""
    run = open_run(workspace=tmp_path_factory.mktemp("real"), overrides=[*SMALL, *_WHOLE, f"sources.use={shared_data}"])
    build_seed(run)
    write_metrics(run)
    write_balanced(run)
    return run


NEEDS_WEIGHTS = {"weights", "overclar_ablation"}
NEEDS_CALIBRATION = {"weights", "reward_hacking", "overclar_ablation"}


def test_every_gate_that_asks_about_the_rows_is_green(real: Run) -> None:
    evidence, names = Evidence(real), {spec.name for spec in gates_of_round(1)}
    assert names > NEEDS_CALIBRATION
    results = [evaluate(name, evidence, 1) for name in sorted(names - NEEDS_CALIBRATION)]
    assert {result.name: result.error or result.failures for result in results if result.status in RED} == {}


def test_the_teacher_gets_the_same_words_and_the_same_verdict_in_every_row(real: Run) -> None:
    assert check_replay(real) > 50


@pytest.mark.long
def test_public_questions_are_beyond_the_rules_and_the_attack_says_so(real: Run) -> None:
    """Whoever brings public questions needs a live judge: with the rubric the reward pays an echo, and that is red."""
    weights = weight_calib(real).body["weights"]
    red = {check.name for check in attack_reward(real, weights).gate.failures}
    assert "echo: paid more than the teacher, share" in red
    assert not {name for name in red if "as trained" in name}


@pytest.mark.long
def test_nor_is_the_order_of_public_questions_kept_and_whatever_needs_no_weights_is_green(real: Run) -> None:
    """With the attack waived by name the last comparison of old score and new reward is red: no weights, no ticket."""
    known = "gates.waivers.reward_hacking=rules do not know public questions; nothing is trained on the score"
    waived = open_run(workspace=real.workspace.root, overrides=[*real.overrides, known])
    others = [stage for stage in STAGES if stage.name != "reward_hacking"]
    *before, last = run_stages(waived, evaluate_here, stages=others)
    assert [outcome.gate.failures for outcome in before] == [()] * (len(others) - 1)
    assert last.gate.name == "shadow_run" and "top10_overlap" in {check.name for check in last.gate.failures}
    record_baseline(waived)
    evidence = Evidence(waived)
    for number, lacking in ((1, NEEDS_WEIGHTS), (2, NEEDS_WEIGHTS | {"shadow_run"})):
        results = [evaluate(spec.name, evidence, number) for spec in gates_of_round(number)]
        assert {result.name for result in results if result.status in RED} == lacking
        write_round(waived, number, results)
    with pytest.raises(RC1Error, match="round 1 has not passed by its own report"):
        issue_ticket(waived)


def test_the_manifest_says_what_the_builder_had_to_do(real: Run) -> None:
    manifest = read_manifest(real.workspace, real.config.pool.path)
    assert manifest is not None
    assert manifest["report"]["rows"] == {"gsm8k": 150, "hotpotqa": 270, "strategyqa": 180}
    assert manifest["report"]["second_uses_of_a_question"] > 0, "300 HotpotQA rows cannot fill 270 + 110 once each"
    assert "gsm8k: solution longer than max_turns" in manifest["report"]["dropped_questions"]
    assert manifest["skipped_records"]["gsm8k"]["no calculator marks"] > 0


def test_most_rows_survive_the_balance(real: Run) -> None:
    balanced, pool = (Evidence(real).rows(name).height for name in ("balanced", "pool"))
    assert balanced / pool > 0.85


def test_real_questions_keep_their_answers(real: Run) -> None:
    rows = Evidence(real).rows("pool")
    assert rows.filter(pl.col("task") == "strategyqa")["answer"].is_in(["yes", "no"]).all()
    assert rows.filter(pl.col("task") == "gsm8k")["answer"].str.contains(r"^-?[\d,.]+$").all()
