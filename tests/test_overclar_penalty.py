"""The over-clarification penalty and the difficulty factor, for one dialogue and for columns."""

from __future__ import annotations

import polars as pl
import pytest

from rc1_lib.reward.terms import (
    difficulty_factors,
    over_clarification_penalties,
    over_clarification_penalty,
)


@pytest.mark.parametrize(("c", "penalty"), [(1, 0.07), (2, 0.14), (5, 0.21)])
def test_each_needless_question_costs_alpha_up_to_the_cap(c: int, penalty: float) -> None:
    assert over_clarification_penalty(c, False, alpha=0.07, cap=3) == pytest.approx(penalty)


@pytest.mark.parametrize("c", [1, 5])
def test_questions_about_missing_information_cost_nothing(c: int) -> None:
    assert over_clarification_penalty(c, True, alpha=0.07, cap=3) == 0.0


def test_a_negative_count_raises_an_error() -> None:
    with pytest.raises(ValueError, match=r"c=-1, alpha=0\.07, cap=3"):
        over_clarification_penalty(-1, False, alpha=0.07, cap=3)


def test_the_columns_equal_the_values_of_single_dialogues() -> None:
    frame = pl.DataFrame({"c": [0, 1, 2, 5, 0, 1, 2, 5], "needs": [False] * 4 + [True] * 4})
    found = frame.select(over_clarification_penalties(pl.col("c"), pl.col("needs"), alpha=0.07, cap=3)).to_series()
    assert found.to_list() == pytest.approx([0.0, 0.07, 0.14, 0.21, 0.0, 0.0, 0.0, 0.0])
    buckets = pl.DataFrame({"bucket": ["easy", "medium", "hard", None]})
    factors = buckets.select(difficulty_factors(pl.col("bucket"), 0.05)).to_series()
    assert factors.to_list()[:3] == pytest.approx([0.95, 1.0, 1.05])
    assert factors.to_list()[3] is None


def test_the_penalty_is_null_if_the_need_or_the_count_is_null() -> None:
    frame = pl.DataFrame({"c": [1, None], "needs": [None, False]}, schema={"c": pl.Int64, "needs": pl.Boolean})
    found = frame.select(over_clarification_penalties(pl.col("c"), pl.col("needs"), alpha=0.07, cap=3)).to_series()
    assert found.to_list() == [None, None]
