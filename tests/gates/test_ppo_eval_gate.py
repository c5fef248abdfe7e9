"""The evaluation gate: a policy that learned when to ask passes, each other one fails in the matching checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from rc1_lib.evaluation.evaluate import Evaluation, evaluate
from rc1_lib.evaluation.gate import (
    CHECK_OF,
    GROUPS,
    HARD,
    NEEDED,
    PROMPTS,
    RATE,
    RECALL,
    RIGHT,
    RIGHT_NEEDED,
    TURNS,
    clear_check,
    ppo_eval_gate,
    task_check,
)
from rc1_lib.numbers.uncertainty import CONFIDENCE
from rc1_lib.records import GateResult, Status
from rc1_lib.run import published_config
from tests.evaluation.tables import PPO, SFT, table
from tests.gates.verdicts import failed, value

# Few samples keep the tests fast; of the checks on right answers, no tested change is near an end of its interval.
RESAMPLES = 40
THRESHOLDS = published_config().gates.evaluation


def judged(frame: pl.DataFrame, **changed: Any) -> GateResult:
    evaluation = evaluate(frame, confidence=CONFIDENCE, resamples=RESAMPLES, seed=1)
    return ppo_eval_gate(evaluation, THRESHOLDS.model_copy(update=changed))


TASKS = {task_check(task) for task in ("hotpotqa", "strategyqa", "gsm8k")}
CLEAR = {clear_check(task) for task in ("hotpotqa", "strategyqa", "gsm8k")}


def advice(result: GateResult, name: str) -> str:
    return next(check.advice for check in result.checks if check.name == name)


def of_ppo(change: pl.Expr, mode: str = "sampled") -> pl.Expr:
    return (pl.col("policy") == "ppo") & (pl.col("mode") == mode) & change


def test_a_policy_that_learned_when_to_ask_passes_every_check() -> None:
    result = judged(table())
    assert failed(result) == set()
    assert {check.name for check in result.checks if check.op != "info"} == {
        PROMPTS, *GROUPS.values(), *CHECK_OF.values(), *TASKS, *CLEAR
    }  # fmt: skip
    assert GateResult.from_dict(result.to_dict()) == result


def test_a_policy_that_stopped_asking_fails() -> None:
    result = judged(table(ppo=replace(PPO, asks_needed=0.0, asks_clear=0.0, solves_clear=0.85)))
    assert failed(result) == {NEEDED, RECALL, RIGHT_NEEDED, *TASKS}
    assert value(result, RATE) == 100.0


def test_asking_everywhere_fails_in_over_clarification() -> None:
    base = replace(SFT, wastes=1.0)  # so many wasted turns that asking everywhere is not longer
    everywhere = replace(PPO, asks_needed=0.9, asks_clear=0.9, wastes=0.0)
    result = judged(table(base, everywhere))
    assert failed(result) == {RATE}
    assert value(result, RATE) < 0
    assert "asks where nothing is missing" in next(c.advice for c in result.failures if c.name == RATE)


def test_wasted_turns_fail_only_in_turns() -> None:
    assert failed(judged(table(ppo=replace(PPO, wastes=0.9)))) == {TURNS}


def test_worse_answers_fail_every_check_on_success_and_right_answers() -> None:
    worse = judged(table(ppo=replace(PPO, solves_asked=0.1, solves_clear=0.4)))
    assert failed(worse) == {NEEDED, HARD, RIGHT_NEEDED, RIGHT, *TASKS, *CLEAR}


def test_success_that_rises_only_because_a_question_came_first_fails() -> None:
    base, asks_first = replace(SFT, solves_asked=0.6, guesses=0.6), replace(PPO, solves_asked=0.6, guesses=0.6)
    result = judged(table(base, asks_first))
    assert value(result, NEEDED) > 30
    assert value(result, "right where asking is needed: change, pp").startswith("0 (")
    assert failed(result) == {RIGHT_NEEDED}
    assert "now follow a question" in advice(result, RIGHT_NEEDED)


def needing(task: str, policy: str = "ppo") -> pl.Expr:
    return (pl.col("policy") == policy) & (pl.col("mode") == "sampled") & pl.col("needs") & (pl.col("task") == task)


def wrong(where: pl.Expr) -> pl.DataFrame:
    """The table of a policy that learned, with wrong answers at some places."""
    return table().with_columns(pl.col("right", "solved", "lucky") & ~where)


@pytest.mark.parametrize("task", ["hotpotqa", "gsm8k"])
def test_a_policy_that_unlearns_one_task_of_three_fails_by_its_name(task: str) -> None:
    result = judged(wrong(needing(task)))
    assert failed(result) - {HARD} == {task_check(task)}
    assert value(result, NEEDED) > 5 and value(result, RIGHT_NEEDED) > 0
    assert f"unlearned {task} where asking is needed (success and right answers fell)" in advice(
        result, task_check(task)
    )


def test_a_policy_that_unlearns_complete_prompts_of_one_task_fails_although_the_mean_rises() -> None:
    clear = of_ppo(~pl.col("needs") & (pl.col("task") == "gsm8k"))
    lost = table().filter(clear & pl.col("right"))["row_id"].sort().head(40)
    result = judged(wrong(clear & pl.col("row_id").is_in(lost.to_list())))
    assert failed(result) == {clear_check("gsm8k")}
    assert "complete prompts of gsm8k" in advice(result, clear_check("gsm8k"))


def test_a_fall_of_one_task_within_its_interval_passes() -> None:
    start = table(SFT, SFT).filter(needing("gsm8k", "sft")).select("row_id", "solved", "right", "lucky", "obtained")
    right = start.filter(pl.col("solved"))["row_id"].sort()

    def fewer(prompts: int) -> GateResult:
        same = table().join(start, on="row_id", how="left", suffix=".sft", maintain_order="left")
        columns = ("solved", "right", "lucky", "obtained")
        lost = pl.col("row_id").is_in(right.head(prompts).to_list())
        return judged(
            same.with_columns(
                pl.when(needing("gsm8k")).then(pl.col(f"{name}.sft") & ~lost).otherwise(pl.col(name)).alias(name)
                for name in columns
            )
        )

    assert task_check("gsm8k") not in failed(fewer(1))
    assert task_check("gsm8k") in failed(fewer(9))


def test_of_a_task_with_too_few_questions_for_an_interval_nothing_is_checked() -> None:
    first = table().filter(needing("gsm8k"))["row_id"].sort()[0]
    few = table().filter(~pl.col("needs") | (pl.col("task") != "gsm8k") | (pl.col("row_id") == first))
    result = judged(few, min_prompts=100)
    assert failed(result) == set()
    assert value(result, task_check("gsm8k")) == "not checked: too few source questions for an interval"


def test_an_untrained_policy_fails_the_checks_that_require_an_improvement() -> None:
    assert failed(judged(table(SFT, SFT))) == {NEEDED, HARD, RATE, RIGHT_NEEDED}


def test_a_rise_equal_to_the_threshold_passes_and_one_prompt_less_fails() -> None:
    untrained = table(SFT, SFT)
    unsolved = (
        untrained.filter((pl.col("policy") == "ppo") & pl.col("needs") & ~pl.col("solved"))["row_id"].unique().sort()
    )

    def rise(prompts: int) -> Any:
        learned = pl.col("row_id").is_in(unsolved.head(prompts).to_list())
        return judged(untrained.with_columns(solved=pl.col("solved") | of_ppo(learned)))

    # 10 of the 200 prompts that need asking are exactly 5 points.
    assert value(rise(10), NEEDED) == 5.0
    assert NEEDED not in failed(rise(10))
    assert NEEDED in failed(rise(9))


@pytest.mark.parametrize(("prompts", "status"), [(599, Status.ERROR), (600, Status.PASSED)])
def test_fewer_prompts_than_required_are_an_error(prompts: int, status: Status) -> None:
    result = judged(table(prompts=prompts))
    assert result.status is status
    assert bool(result.error) is (status is Status.ERROR)


def test_a_seed_that_fails_alone_fails_the_gate_although_the_mean_passes() -> None:
    parts = {1: table(seed=1), 2: table(seed=2), 3: table(seed=3, ppo=replace(PPO, wastes=0.6))}

    def compared(frame: pl.DataFrame) -> Evaluation:
        return evaluate(frame, confidence=CONFIDENCE, resamples=RESAMPLES, seed=1)

    pooled, alone = compared(pl.concat(parts.values())), {seed: compared(frame) for seed, frame in parts.items()}
    assert failed(ppo_eval_gate(pooled, THRESHOLDS)) == set()
    result = ppo_eval_gate(pooled, THRESHOLDS, alone)
    assert failed(result) == {"seed 3: clears every threshold"}
    assert [check.advice for check in result.failures] == [f"on its own it misses: {TURNS}"]
    assert value(result, f"seed 3: {TURNS}") > 0 > value(result, f"seed 1: {TURNS}")
