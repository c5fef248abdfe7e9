"""The gate on answer rules: sound rules pass on the pool's gold answers, and each planted fault fails a named check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl
import pytest

from rc1_lib.answer_rules.check import Rule
from rc1_lib.evidence import Evidence
from rc1_lib.gates import answer_rule
from rc1_lib.gates.answer_rule import answer_rule_gate
from rc1_lib.records import GateResult, Status
from rc1_lib.task_specs import gsm8k, registered, task_spec
from tests.answer_rules import plain_rules as rules
from tests.gates.verdicts import failed

SOUND: Mapping[str, Rule] = {
    "gsm8k": rules.sound_number, "hotpotqa": rules.sound_text, "strategyqa": rules.sound_verdict,
}  # fmt: skip
PAID, REFUSED = "wrong answers paid, share", "right answers refused, share"
FAULTS: Mapping[str, tuple[str, Rule, set[str]]] = {
    "reads the first number": ("gsm8k", rules.first_number, {PAID, "lists of all candidates paid",
                                                                "longest pages paid"}),
    "pays an empty answer": ("hotpotqa", rules.empty_is_right, {PAID, "empty answers paid"}),
    "pays the longest page": ("hotpotqa", rules.long_is_right, {PAID, "longest pages paid"}),
    "pays any text that contains the answer": ("hotpotqa", rules.holds_it, {PAID, "longest pages paid",
                                                                    "lists of all candidates paid"}),
    "pays one of a list": ("hotpotqa", rules.one_of_a_list, {PAID, "lists of all candidates paid"}),
    "does not see a negation": ("hotpotqa", rules.deaf_to_not, {PAID}),
    "does not see a sign": ("gsm8k", rules.deaf_to_signs, {PAID}),
    "takes one more for near enough": ("gsm8k", rules.near_enough, {PAID}),
    "reads the first word": ("strategyqa", rules.first_word, {PAID, "lists of all candidates paid"}),
    "refuses Chinese": ("strategyqa", rules.no_chinese, {REFUSED}),
    "compares capitals": ("hotpotqa", rules.case_counts, {REFUSED}),
    "reads what programs read": ("gsm8k", rules.as_programs_read, {REFUSED}),
    "breaks on an empty answer": ("hotpotqa", rules.breaks_on_nothing, {"answers at which the rule breaks"}),
    "pays anything": ("gsm8k", rules.anything, {PAID, "empty answers paid", "longest pages paid",
                                                "lists of all candidates paid"}),
    "pays nothing": ("strategyqa", rules.nothing, {REFUSED}),
}  # fmt: skip


@pytest.fixture(scope="module")
def rows(evidence: Evidence) -> pl.DataFrame:
    return evidence.rows("pool")


def judged(rows: pl.DataFrame, golds: int = 40, **others: Rule) -> GateResult:
    return answer_rule_gate(rows, {**SOUND, **others}.__getitem__, golds)


def test_sound_rules_pass_on_the_embedded_pool(rows: pl.DataFrame) -> None:
    result = judged(rows)
    assert (result.status, result.failures, result.offenders) == (Status.PASSED, (), ())
    values = {check.name: check.value for check in result.checks}
    assert {values[f"form of the golds[{task}]"] for task in SOUND} == {"number", "text", "verdict"}
    assert all(values[f"kinds of {name}[{task}]"] >= 20 for task in SOUND for name in (
        "spellings asked about", "wrong answers asked about"
    ))  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_each_planted_fault_of_a_rule_fails_the_matching_checks(fault: str, rows: pl.DataFrame) -> None:
    task, rule, names = FAULTS[fault]
    result = judged(rows.filter(pl.col("task") == task), **{task: rule})
    assert failed(result) == {f"{name}[{task}]" for name in names}
    assert {one["task"] for one in result.offenders} == {task}
    assert all(one["id"] and one["kind"] in one["reason"] for one in result.offenders)


def test_few_gold_answers_leave_shares_undecided_except_for_yes_or_no_answers(rows: pl.DataFrame) -> None:
    few = judged(rows, golds=2)
    undecided = {check.name: check.undecided for check in few.checks if check.name.startswith((PAID, REFUSED))}
    assert few.failures == ()
    assert {name for name, words in undecided.items() if words.startswith("undecided")} == {
        f"{PAID}[gsm8k]", f"{PAID}[hotpotqa]", f"{REFUSED}[gsm8k]", f"{REFUSED}[hotpotqa]",
    }  # fmt: skip
    enough = judged(rows, golds=200)
    assert [check.name for check in enough.checks if check.undecided] == []


def test_identical_gold_answers_fail(rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    alike = rows.filter(pl.col("task") == "hotpotqa").with_columns(answer=pl.lit("Paris"), aliases=pl.lit([]))
    constant = "most frequent gold, share of questions[hotpotqa]"
    assert failed(judged(alike)) == {"different golds[hotpotqa]", constant}
    monkeypatch.setattr(answer_rule, "MIN_KINDS", 30)
    assert failed(judged(alike)) == {
        "different golds[hotpotqa]", constant,
        "kinds of spellings asked about[hotpotqa]", "kinds of wrong answers asked about[hotpotqa]",
    }  # fmt: skip


def test_a_verdict_that_is_right_for_nearly_all_questions_fails(rows: pl.DataFrame) -> None:
    verdicts = rows.filter(pl.col("task") == "strategyqa")
    assert failed(judged(verdicts)) == set()
    name, questions = "most frequent gold, share of questions[strategyqa]", verdicts["source_id"].unique().sort()
    for share, fails in ((0.8, False), (0.82, True)):
        yes = pl.col("source_id").is_in(questions.head(round(share * len(questions))).implode())
        found = judged(verdicts.with_columns(answer=pl.when(yes).then(pl.lit("yes")).otherwise(pl.lit("no"))))
        assert (name in failed(found)) is fails


def test_the_rule_of_a_custom_task_is_checked(rows: pl.DataFrame) -> None:
    custom = replace(gsm8k.SPEC, name="own_sums", is_right=rules.first_number)
    numbers = rows.filter(pl.col("task") == "gsm8k").with_columns(task=pl.lit("own_sums"))
    with registered(custom):
        result = answer_rule_gate(numbers, lambda task: task_spec(task).is_right)
    assert f"{PAID}[own_sums]" in failed(result)
