"""The vote on a row's difficulty bucket, and the balanced pool."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rc1_lib.difficulty.buckets import balance, quotas, vote
from rc1_lib.errors import RowError
from rc1_lib.records import Bucket, Task

TARGET: dict[Bucket, float] = {"easy": 0.25, "medium": 0.45, "hard": 0.30}
MIX: dict[Task, float] = {"gsm8k": 0.5, "hotpotqa": 0.5}
EASY = {
    "len_tokens": 199, "turns": 2, "tool_hops": 1, "ops_numeric": 1, "entities": 3, "connector_density": 2.9,
    "clue_overlap": 0.41, "needs_clarification": False,
}  # fmt: skip
HARD = {
    "len_tokens": 601, "turns": 5, "tool_hops": 4, "ops_numeric": 4, "entities": 7, "connector_density": 6.1,
    "clue_overlap": 0.19, "needs_clarification": True,
}  # fmt: skip
MEDIUM = {
    "len_tokens": 600, "turns": 3, "tool_hops": 3, "ops_numeric": 2, "entities": 6, "connector_density": 6.0,
    "clue_overlap": 0.20, "needs_clarification": True,
}  # fmt: skip


def bucket(*features: dict[str, float | bool]) -> str:
    frame = pl.DataFrame({key: value for part in features for key, value in part.items()})
    return str(frame.select(vote()).item())


def test_rows_at_the_bounds_get_the_unanimous_bucket() -> None:
    assert [bucket(row) for row in (EASY, MEDIUM, HARD)] == ["easy", "medium", "hard"]


def test_majority_wins_and_ties_go_to_the_harder_bucket() -> None:
    keys = list(EASY)
    assert bucket(EASY, {key: HARD[key] for key in keys[:3]}) == "easy"
    four_hard = {key: HARD[key] for key in ("len_tokens", "tool_hops", "ops_numeric", "entities")}
    assert bucket(EASY, four_hard) == "hard"
    four_medium = {key: MEDIUM[key] for key in ("len_tokens", "tool_hops", "ops_numeric", "entities")}
    assert bucket(EASY, four_medium) == "medium"


def test_clarification_votes_hard_only_from_four_turns() -> None:
    # Three features vote easy (entities, connectors, overlap), two hard; turns and operators vote medium.
    row = {**EASY, "len_tokens": 601, "tool_hops": 4, "ops_numeric": 2, "needs_clarification": True}
    assert bucket({**row, "turns": 3}) == "medium"
    assert bucket({**row, "turns": 4}) == "hard"


@given(st.tuples(*[st.integers(0, 5000)] * 3))
def test_quotas_stay_within_the_supply_and_the_bounds(supply: tuple[int, int, int]) -> None:
    available: dict[Bucket, int] = dict(zip(("easy", "medium", "hard"), supply, strict=True))  # type: ignore[arg-type]
    taken = quotas(available, TARGET)
    total = sum(taken.values())
    assert all(taken[name] <= available[name] for name in taken)
    if total:
        assert taken["hard"] >= 0.30 * total - 1e-9
        assert taken["easy"] <= 0.25 * total + 1e-9


def test_balanced_rows_are_unique_ordered_and_meet_the_target_per_task() -> None:
    rows = [
        (f"{task}-{name}-{number}", task, name)
        for task in ("gsm8k", "hotpotqa")
        for name, n in (("easy", 50), ("medium", 40), ("hard", 90))
        for number in range(n)
    ]
    metrics = pl.DataFrame(rows, schema=["id", "task", "bucket"], orient="row")
    chosen = balance(metrics, TARGET, MIX, seed=1)
    assert chosen["id"].n_unique() == chosen.height
    assert chosen["id"].to_list() == [row[0] for row in rows if row[0] in set(chosen["id"])]
    per_task = metrics.join(chosen, on="id").group_by("task").agg((pl.col("bucket") == "hard").mean(), pl.len())
    assert all(share >= 0.30 and count == 89 for _, share, count in per_task.iter_rows())
    assert balance(metrics, TARGET, MIX, seed=1).equals(chosen)


def test_task_without_hard_rows_is_rejected_with_the_keys_to_change() -> None:
    metrics = pl.DataFrame({"id": ["1", "2"], "task": ["gsm8k", "gsm8k"], "bucket": ["easy", "medium"]})
    with pytest.raises(RowError, match=r"gsm8k: .*pool\.intended .*pool\.recipes"):
        balance(metrics, TARGET, {"gsm8k": 1.0}, seed=1)
