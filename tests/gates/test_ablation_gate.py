"""The ablation's gate is green on a penalty that works, and red, in the matching check, on each way it can fail."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from rc1_lib.config.thresholds import AblationGate
from rc1_lib.gates.overclar_ablation import ablation_gate
from rc1_lib.records import GateResult
from rc1_lib.reward.ablation import ablate
from rc1_lib.run import published_config
from tests.gates.verdicts import advice, failed, value

THRESHOLDS = AblationGate(
    min_prompts=10,
    min_rate_drop_pct=20.0,
    max_turns_up=0.0,
    max_success_drop_pp=1.0,
)
SHARED = published_config().gates.shared
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
    """`plain` prompts where nothing is missing and 20 where something is, each with a dialogue that asks and one not.

    Args:
        alpha: price of a question.
        lead: by how much the dialogue that asks is scored higher.
        quiet_turns: length of the dialogues that do not ask; the others take 4.
        quiet_fails: on how many plain prompts the dialogue that does not ask fails.
        plain: prompts where nothing is missing.
    """
    rows: list[dict[str, Any]] = []
    for number in range(plain + 20):
        needs = number >= plain
        prompt = {"prompt": f"{number:03d}", "needs_clarification": needs, "task": "gsm8k", "bucket": "easy"}
        penalty = 0.0 if needs else alpha * min(1, CAP)
        solved = not needs and number >= quiet_fails
        rows += [
            {**prompt, "main": 0.8 + lead, "penalty": penalty, "clarifications": 1, "solved": True, "turns": 4},
            {**prompt, "main": 0.8, "penalty": 0.0, "clarifications": 0, "solved": solved, "turns": quiet_turns},
        ]
    return pl.DataFrame(rows)


def judged(frame: pl.DataFrame) -> GateResult:
    ablation = ablate(frame, confidence=0.95, resamples=100, seed=1)
    return ablation_gate(ablation, ablation.coverage, THRESHOLDS, SHARED)


def test_a_penalty_that_works_is_green_and_every_figure_is_shown() -> None:
    result = judged(dialogues())
    assert result.name == "overclar_ablation"
    assert failed(result) == set()
    assert value(result, RATE) == 100.0
    assert value(result, "over-clarification rate without") == 1.0
    assert value(result, "over-clarification rate with") == 0.0
    assert value(result, "rate of asking where needed with") == 1.0
    assert value(result, f"{RATE}: 95 % interval") == "100 to 100"
    assert value(result, f"{RATE}: interval clears the threshold") is True
    assert GateResult.from_dict(result.to_dict()) == result


def test_without_a_price_nothing_changes() -> None:
    result = judged(dialogues(alpha=0.0))
    assert failed(result) == {RATE}
    assert (value(result, RATE), value(result, TURNS), value(result, SUCCESS)) == (0.0, 0.0, 0.0)
    assert "raise overclar.alpha" in advice(result, RATE)
    assert "0 of the 100 prompts" in advice(result, RATE)


def test_a_judge_that_loves_asking_is_beyond_the_penalty() -> None:
    result = judged(dialogues(lead=0.15))
    assert failed(result) == {RATE}
    assert "criteria that reward needless questions" in advice(result, RATE)


def test_where_the_main_reward_never_asks_needlessly_there_is_nothing_to_lower() -> None:
    result = judged(dialogues(lead=-0.15))
    assert failed(result) == {RATE}
    assert "nothing to lower" in advice(result, RATE)


def test_a_price_far_too_high_cannot_hurt_where_asking_is_needed() -> None:
    result = judged(dialogues(alpha=100.0))
    assert failed(result) == set()
    assert value(result, "rate of asking where needed with") == 1.0


@pytest.mark.parametrize(("fails", "expected"), [(1, set()), (2, {SUCCESS}), (60, {SUCCESS})])
def test_falling_success_turns_it_red(fails: int, expected: set[str]) -> None:
    result = judged(dialogues(quiet_fails=fails))
    assert value(result, SUCCESS) == pytest.approx(100 * fails / 120)
    assert failed(result) == expected


def test_success_may_fall_by_just_what_is_allowed() -> None:
    # One prompt in a hundred is exactly one percentage point, although 0.99 - 0.98 is not 0.01.
    result = judged(dialogues(plain=80, quiet_fails=1))
    assert value(result, SUCCESS) == 1.0
    assert failed(result) == set()


def test_the_interval_can_miss_a_threshold_that_the_value_meets() -> None:
    result = judged(dialogues(plain=80, quiet_fails=1))
    assert value(result, f"{SUCCESS}: interval clears the threshold") is False


@pytest.mark.parametrize(("turns", "expected"), [(3, set()), (4, set()), (5, {TURNS})])
def test_longer_dialogues_turn_it_red(turns: int, expected: set[str]) -> None:
    assert failed(judged(dialogues(quiet_turns=turns))) == expected


def test_half_unscored_turns_it_red() -> None:
    frame = dialogues().with_row_index("row")
    half = frame.with_columns(main=pl.when(pl.col("row") % 4 < 2).then("main"))
    result = judged(half)
    assert failed(result) == {"coverage"}
    assert value(result, "coverage") == 0.5
    assert value(result, "unscored dialogues") == 120
    assert value(result, "prompts without any scored dialogue, left out") == 60


def test_half_of_every_prompt_unscored_leaves_nothing_to_choose() -> None:
    frame = dialogues().with_columns(main=pl.when(pl.col("clarifications") > 0).then("main"))
    result = judged(frame)
    assert failed(result) == {"coverage", PROMPTS, RATE}
    assert value(result, PROMPTS) == 0


def test_nothing_scored_is_red_in_every_check() -> None:
    result = judged(dialogues().with_columns(main=pl.lit(None, pl.Float64)))
    assert failed(result) == {"coverage", PROMPTS, RATE, TURNS, SUCCESS}


@pytest.mark.parametrize(("plain", "expected"), [(9, {PROMPTS}), (10, set())])
def test_too_few_prompts_to_tell_turn_it_red(plain: int, expected: set[str]) -> None:
    assert failed(judged(dialogues(plain=plain))) == expected
