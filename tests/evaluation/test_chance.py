"""Chance is the better of the best constant answer and a draw from the possible answers, by task."""

from __future__ import annotations

import math

import pytest

from rc1_lib.evaluation.chance import chance, chance_of
from tests.evaluation.tables import row


def test_the_most_frequent_answer_counts_whatever_its_case() -> None:
    found = chance([("strategyqa", "Yes", None), ("strategyqa", "yes ", None), ("strategyqa", "no", None)])
    assert found.overall == found.by_task["strategyqa"] == pytest.approx(2 / 3)


def test_a_draw_counts_if_it_is_better_and_open_ended_prompts_cannot_be_drawn() -> None:
    found = chance([("hotpotqa", "Ann", 2), ("hotpotqa", "Ben", 2), ("hotpotqa", "Cem", 4), ("hotpotqa", "Dan", None)])
    assert found.by_task["hotpotqa"] == pytest.approx((1 / 2 + 1 / 2 + 1 / 4) / 4)


def test_tasks_are_weighted_by_their_prompts() -> None:
    found = chance([("gsm8k", str(number), None) for number in range(6)] + [("strategyqa", "yes", 2)] * 2)
    assert found.by_task == {"gsm8k": pytest.approx(1 / 6), "strategyqa": 1.0}
    assert found.overall == pytest.approx((6 * 1 / 6 + 2 * 1.0) / 8)


def test_only_rows_that_need_asking_count() -> None:
    rows = [row(number, answer=str(number)) for number in range(9)]  # every third needs asking, one of each task
    found = chance_of(rows, lambda about: 4 if about["task"] == "gsm8k" else None)
    assert found.by_task == {"hotpotqa": 1.0, "strategyqa": 1.0, "gsm8k": 1.0}
    same_task = [{**about, "task": "gsm8k"} for about in rows]
    assert chance_of(same_task, lambda _: None).overall == pytest.approx(1 / 3)
    assert chance_of(same_task, lambda _: 2).overall == pytest.approx(1 / 2)


def test_without_prompts_that_need_asking_chance_is_undefined() -> None:
    found = chance([])
    assert math.isnan(found.overall) and found.to_dict() == {"overall": None, "by_task": {}}
