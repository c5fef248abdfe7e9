"""The ablation gate passes if the penalty works, and otherwise fails in the check that names the cause."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from rc1_lib.calibration.overclar_ablation import ablation_gate
from rc1_lib.config.thresholds import AblationGate
from rc1_lib.records import GateResult
from rc1_lib.reward.ablation import ablate
from tests.gates.verdicts import failed, value

THRESHOLDS = AblationGate(min_rate_drop_pct=20.0, max_turns_up=0.0, max_success_drop_pp=1.0)
ALPHA, CAP = 0.07, 3
RATE, TURNS, SUCCESS = "rate drop, %", "mean turns up", "success drop, pp"
PROMPTS = "prompts whose dialogues differ in needless asking"


def dialogues(
    *,
    alpha: float = ALPHA,
    lead: float = 0.03,
    quiet_turns: int = 3,
    quiet_fails: int = 0,
    plain: int = 100,
) -> pl.DataFrame:
    """Return `plain` complete prompts and 20 incomplete ones, each with a dialogue that asks and one that does not.

    Args:
        alpha: penalty per needless question.
        lead: how much higher the dialogue that asks is scored.
        quiet_turns: length of the dialogues that do not ask; the others take 4.
        quiet_fails: number of complete prompts on which the dialogue that does not ask fails.
        plain: prompts without missing information.
    """
    rows: list[dict[str, Any]] = []
    for number in range(plain + 20):
        needs = number >= plain
        prompt = {"prompt": f"{number:03d}", "needs_clarification": needs}
        penalty = 0.0 if needs else alpha * min(1, CAP)
        solved = not needs and number >= quiet_fails
        rows += [
            {**prompt, "main": 0.8 + lead, "penalty": penalty, "clarifications": 1, "solved": True, "turns": 4},
            {**prompt, "main": 0.8, "penalty": 0.0, "clarifications": 0, "solved": solved, "turns": quiet_turns},
        ]
    return pl.DataFrame(rows)


def judged(frame: pl.DataFrame) -> GateResult:
    ablation = ablate(frame, confidence=0.95, resamples=100, seed=1)
    return ablation_gate(ablation, ablation.coverage, THRESHOLDS)


def test_a_working_penalty_passes_and_the_gate_reports_every_figure() -> None:
    result = judged(dialogues())
    assert result.name == "overclar_ablation"
    assert failed(result) == set()
    assert value(result, RATE) == 100.0
    assert value(result, "over-clarification rate without") == 1.0
    assert value(result, "over-clarification rate with") == 0.0
    assert value(result, "rate of asking where needed with") == 1.0
    assert value(result, f"{RATE}: interval") == "100 (95 %: 100 to 100)"
    assert GateResult.from_dict(result.to_dict()) == result


def test_zero_penalty_fails_in_the_rate_drop() -> None:
    result = judged(dialogues(alpha=0.0))
    assert failed(result) == {RATE}
    assert (value(result, RATE), value(result, TURNS), value(result, SUCCESS)) == (0.0, 0.0, 0.0)


def test_a_judge_that_rewards_questions_more_than_the_penalty_fails_in_the_rate_drop() -> None:
    result = judged(dialogues(lead=0.15))
    assert failed(result) == {RATE}


@pytest.mark.parametrize(("fails", "expected"), [(1, set()), (2, {SUCCESS})])
def test_a_success_drop_above_the_threshold_fails(fails: int, expected: set[str]) -> None:
    result = judged(dialogues(quiet_fails=fails))
    assert value(result, SUCCESS) == pytest.approx(100 * fails / 120)
    assert failed(result) == expected


@pytest.mark.parametrize(("turns", "expected"), [(4, set()), (5, {TURNS})])
def test_longer_dialogues_fail_in_the_turns(turns: int, expected: set[str]) -> None:
    assert failed(judged(dialogues(quiet_turns=turns))) == expected


def test_missing_scores_for_half_of_the_prompts_fail_in_the_coverage() -> None:
    frame = dialogues().with_row_index("row")
    half = frame.with_columns(main=pl.when(pl.col("row") % 4 < 2).then("main"))
    result = judged(half)
    assert failed(result) == {"coverage"}
    assert value(result, "coverage") == 0.5
    assert value(result, "unscored dialogues") == 120
    assert value(result, "prompts without any scored dialogue, left out") == 60


@pytest.mark.parametrize(("plain", "expected"), [(9, {PROMPTS}), (10, set())])
def test_too_few_differing_prompts_fail(plain: int, expected: set[str]) -> None:
    assert failed(judged(dialogues(plain=plain))) == expected
