"""Whether an answer is right, against each data set's own rule, by hand and on hostile answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.records import Task
from rc1_lib.task_specs import is_right

GOLD = {"gsm8k": "7", "strategyqa": "yes", "hotpotqa": "Ithwyn"}


@pytest.mark.parametrize(
    ("task", "given_answer", "gold", "right"),
    [
        ("gsm8k", "72", "72", True),
        ("gsm8k", "$1,200.50 in all", "1200.5", True),
        ("gsm8k", "72.00", "72", True),
        ("gsm8k", "-72", "72", False),
        ("gsm8k", "12 or 72", "72", False),
        ("gsm8k", "seventy-two", "72", False),
        ("gsm8k", "", "72", False),
        ("strategyqa", "Yes, because.", "yes", True),
        ("strategyqa", "是", "yes", True),
        ("strategyqa", "不是。", "no", True),
        ("strategyqa", "no or yes", "yes", False),
        ("strategyqa", "perhaps yes", "yes", False),
        ("strategyqa", "", "no", False),
        ("hotpotqa", "The river, Ithwyn!", "river Ithwyn", True),
        ("hotpotqa", "Ithwyn or Salkoth", "Ithwyn", False),
        ("hotpotqa", "", "Ithwyn", False),
    ],
)
def test_answers_by_hand(task: Task, given_answer: str, gold: str, right: bool) -> None:
    assert is_right(task, given_answer, gold) is right


def test_aliases_count_for_names_alone() -> None:
    assert is_right("hotpotqa", "NYC", "New York City", ["nyc"])
    assert not is_right("gsm8k", "73", "72", ["73"])


@pytest.mark.parametrize("task", GOLD)
@given(answer=st.text(st.characters(), max_size=80))
def test_any_text_gets_a_verdict(task: Task, answer: str) -> None:
    assert is_right(task, answer, GOLD[task]) in {True, False}
