"""The baseline reward and the calibrated reward, term by term."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from rc1_lib.errors import RowError
from rc1_lib.reward.terms import add_old_score, add_reward, difficulty_factor, over_clarification_penalty

OLD = {"answered": 0.75, "grounded": 0.25}
NEW = {"answered": 0.25, "grounded": 0.25, "settled": 0.5}
PRICE: dict[str, Any] = {"alpha": 0.07, "cap": 3, "beta": 0.05}


def row(**changes: Any) -> dict[str, Any]:
    """Return a dialogue about a hard prompt with two needless questions."""
    return {
        "answered": 1.0,
        "grounded": 0.5,
        "settled": 1.0,
        "clarifications": 2,
        "needs_clarification": False,
        "bucket": "hard",
    } | changes


SCHEMA = {
    **dict.fromkeys(NEW, pl.Float64),
    "clarifications": pl.Int64,
    "needs_clarification": pl.Boolean,
    "bucket": pl.String,
}


def rewarded(*rows: dict[str, Any], **changes: Any) -> pl.DataFrame:
    return add_reward(add_old_score(pl.DataFrame(rows, schema=SCHEMA), OLD), NEW, **(PRICE | changes))


def test_the_terms_of_one_row_equal_those_worked_out_by_hand() -> None:
    found = rewarded(row()).to_dicts()[0]
    assert {name: found[name] for name in ("old.answered", "old.grounded", "old")} == {
        "old.answered": 0.75,  # 0.75 * 1
        "old.grounded": 0.125,  # 0.25 * 0.5
        "old": 0.875,
    }
    assert [found[f"new.{name}"] for name in NEW] == [0.25, 0.125, 0.5]
    assert found["main"] == 0.875
    assert found["penalty"] == pytest.approx(0.14)  # two needless questions at 0.07
    assert found["reward"] == pytest.approx(0.735)  # 0.875 - 0.14
    assert found["factor"] == pytest.approx(1.05)  # hard
    assert found["total"] == pytest.approx(0.77875)  # 0.875 * 1.05 - 0.14


def test_a_missing_score_gives_a_null_reward() -> None:
    found = rewarded(row(answered=None), row()).to_dicts()
    for name in ("old.answered", "old", "new.answered", "main", "reward", "total"):
        assert found[0][name] is None, name
        assert found[1][name] is not None, name
    assert found[0]["new.settled"] == 0.5


def test_an_unknown_need_or_difficulty_gives_null_terms() -> None:
    unknown, unmeasured = rewarded(row(needs_clarification=None), row(bucket=None)).to_dicts()
    assert (unknown["main"], unknown["penalty"], unknown["reward"]) == (0.875, None, None)
    assert (unmeasured["reward"], unmeasured["factor"], unmeasured["total"]) == (pytest.approx(0.735), None, None)


def test_the_terms_of_many_rows_equal_single_values_and_sum_to_the_total() -> None:
    rng = random.Random(4)
    rows = [
        row(
            answered=rng.random(),
            grounded=rng.random(),
            settled=rng.random(),
            clarifications=rng.randrange(6),
            needs_clarification=rng.random() < 0.5,
            bucket=rng.choice(["easy", "medium", "hard"]),
        )
        for _ in range(200)
    ]
    for one, found in zip(rows, rewarded(*rows).to_dicts(), strict=True):
        penalty = over_clarification_penalty(one["clarifications"], one["needs_clarification"], alpha=0.07, cap=3)
        main = sum(found[f"new.{name}"] for name in NEW)
        assert found["old"] == pytest.approx(sum(found[f"old.{name}"] for name in OLD))
        assert found["penalty"] == penalty
        assert found["factor"] == pytest.approx(difficulty_factor(one["bucket"], 0.05))
        assert found["reward"] == pytest.approx(main - penalty)
        assert found["total"] == pytest.approx(main * difficulty_factor(one["bucket"], 0.05) - penalty)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda frame: frame.drop("bucket", "clarifications"), "lack clarifications, bucket"),
        (lambda frame: frame.with_columns(clarifications=pl.lit(-1)), "contains -1"),
    ],
)
def test_rows_with_missing_or_invalid_columns_raise_an_error(damage: Any, message: str) -> None:
    with pytest.raises(RowError, match=message):
        add_reward(damage(pl.DataFrame([row()], schema=SCHEMA)), NEW, **PRICE)
