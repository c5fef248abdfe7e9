"""The over-clarification penalty: the cases that the specification names."""

from __future__ import annotations

import polars as pl
import pytest

from rc1_lib.reward.terms import (
    difficulty_factor,
    difficulty_factors,
    over_clarification_penalties,
    over_clarification_penalty,
)


def test_not_triggered_without_a_question() -> None:
    assert over_clarification_penalty(0, False, alpha=0.07, cap=3) == 0.0


@pytest.mark.parametrize(("c", "penalty"), [(1, 0.07), (2, 0.14), (5, 0.21)])
def test_each_needless_question_costs_up_to_the_cap(c: int, penalty: float) -> None:
    assert over_clarification_penalty(c, False, alpha=0.07, cap=3) == pytest.approx(penalty)


@pytest.mark.parametrize("c", [0, 1, 2, 5])
def test_asking_costs_nothing_where_something_is_missing(c: int) -> None:
    assert over_clarification_penalty(c, True, alpha=0.07, cap=3) == 0.0


def test_negative_values_are_refused() -> None:
    with pytest.raises(ValueError, match=r"c=-1, alpha=0\.07, cap=3"):
        over_clarification_penalty(-1, False, alpha=0.07, cap=3)


def test_the_difficulty_factor_lifts_hard_rows_and_lowers_easy_ones() -> None:
    assert [difficulty_factor(bucket, 0.05) for bucket in ("easy", "medium", "hard")] == pytest.approx(
        [0.95, 1.0, 1.05]
    )


def test_the_columns_say_the_same() -> None:
    frame = pl.DataFrame({"c": [0, 1, 2, 5, 0, 1, 2, 5], "needs": [False] * 4 + [True] * 4})
    found = frame.select(over_clarification_penalties(pl.col("c"), pl.col("needs"), alpha=0.07, cap=3)).to_series()
    assert found.to_list() == pytest.approx([0.0, 0.07, 0.14, 0.21, 0.0, 0.0, 0.0, 0.0])
    buckets = pl.DataFrame({"bucket": ["easy", "medium", "hard", None]})
    factors = buckets.select(difficulty_factors(pl.col("bucket"), 0.05)).to_series()
    assert factors.to_list()[:3] == pytest.approx([0.95, 1.0, 1.05])
    assert factors.to_list()[3] is None


def test_a_penalty_is_unknown_where_the_need_or_the_count_is() -> None:
    frame = pl.DataFrame({"c": [1, None], "needs": [None, False]}, schema={"c": pl.Int64, "needs": pl.Boolean})
    found = frame.select(over_clarification_penalties(pl.col("c"), pl.col("needs"), alpha=0.07, cap=3)).to_series()
    assert found.to_list() == [None, None]
