"""Buckets by a vote of eight features, and sampling to a target distribution without repeating a row."""

from __future__ import annotations

import math
from collections.abc import Mapping

import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.records import BUCKETS, Bucket, Task

RISING: Mapping[str, tuple[float, float]] = {
    "len_tokens": (200, 600), "turns": (2, 5), "tool_hops": (1, 4), "ops_numeric": (1, 4), "entities": (3, 7),
    "connector_density": (3, 6),
}  # fmt: skip
"""The specification's table: feature that grows with difficulty -> up to where it votes easy, and from where hard."""
CLUE_OVERLAP = (0.40, 0.20)
"""The same of the feature that falls: above the first it votes easy, below the second hard."""
CLARIFICATION_HARD_TURNS = 4
"""Turns at which a row with missing information votes hard; with fewer, it votes medium."""


def vote() -> pl.Expr:
    """Return the bucket with the most votes; ties go to the harder one."""
    votes = [_rising(name) for name in RISING]
    votes += [_falling(), _clarification()]
    easy, medium, hard = (pl.sum_horizontal([ballot == bucket for ballot in votes]) for bucket in BUCKETS)
    return (
        pl.when((hard >= medium) & (hard >= easy))
        .then(pl.lit("hard"))
        .when(medium >= easy)
        .then(pl.lit("medium"))
        .otherwise(pl.lit("easy"))
    )


_WHOLE = ("turns", "tool_hops", "ops_numeric", "entities")


def _rising(name: str) -> pl.Expr:
    """Vote by a feature that grows with difficulty; counts include their bounds (<= easy, >= hard), others do not."""
    (easy, hard), value = RISING[name], pl.col(name)
    whole = name in _WHOLE
    is_easy = value <= easy if whole else value < easy
    is_hard = value >= hard if whole else value > hard
    return _votes(is_easy, is_hard)


def _falling() -> pl.Expr:
    (easy, hard), value = CLUE_OVERLAP, pl.col("clue_overlap")
    return _votes(value > easy, value < hard)


def _clarification() -> pl.Expr:
    needs = pl.col("needs_clarification")
    return _votes(~needs, needs & (pl.col("turns") >= CLARIFICATION_HARD_TURNS))


def _votes(is_easy: pl.Expr, is_hard: pl.Expr) -> pl.Expr:
    return pl.when(is_hard).then(pl.lit("hard")).when(is_easy).then(pl.lit("easy")).otherwise(pl.lit("medium"))


def quotas(supply: Mapping[Bucket, int], target: Mapping[Bucket, float]) -> dict[Bucket, int]:
    """Return the largest counts in the target shares that the supply can fill; `share_out` rounds them."""
    ratios = [supply[bucket] / target[bucket] for bucket in BUCKETS if target[bucket] > 0]
    # Rounding changes each count by less than one row, so slightly more than the smallest ratio may still fit.
    for total in range(math.floor(min(ratios)) + 10, 0, -1):
        wanted = share_out(total, target)
        if all(0 <= wanted[bucket] <= supply[bucket] for bucket in BUCKETS):
            return wanted
    return share_out(0, target)


def share_out(total: int, target: Mapping[Bucket, float]) -> dict[Bucket, int]:
    """Split `total` rows into the target shares; hard is rounded up and easy down, so that hard rows keep theirs."""
    hard = math.ceil(total * target["hard"] - 1e-9)
    easy = math.floor(total * target["easy"] + 1e-9)
    return {"easy": easy, "medium": total - hard - easy, "hard": hard}


def balance(
    metrics: pl.DataFrame, target: Mapping[Bucket, float], mix: Mapping[Task, float], seed: int
) -> pl.DataFrame:
    """Choose rows without repetition so that tasks have the shares of `mix`, and buckets those of `target` in each.

    Args:
        metrics: one line per row with `id`, `task`, `bucket`.
        target: shares of easy, medium and hard.
        mix: shares of the tasks; the task that is scarcest relative to its share decides the total number of rows.
        seed: decides which of the surplus rows are left out.

    Returns:
        Column `id`, in the order of `metrics`.

    Raises:
        RowError: when a task has no rows of a bucket; the message names the setting to change.
    """
    parts = {task: metrics.filter(pl.col("task") == task) for task in mix}
    most = {task: _most(part, target, task) for task, part in parts.items()}
    size = min(most[task] / share for task, share in mix.items() if share > 0)
    chosen = [
        parts[task].filter(pl.col("bucket") == bucket).sample(count, seed=seed, shuffle=True)
        for task, share in mix.items()
        for bucket, count in _fitting(parts[task], min(most[task], round(share * size)), target).items()
    ]
    return metrics.join(pl.concat(chosen).select("id"), on="id", how="semi", maintain_order="left").select("id")


def _supply(part: pl.DataFrame) -> dict[Bucket, int]:
    return {bucket: int((part["bucket"] == bucket).sum()) for bucket in BUCKETS}


def _most(part: pl.DataFrame, target: Mapping[Bucket, float], task: Task) -> int:
    supply = _supply(part)
    total = sum(quotas(supply, target).values())
    if not total:
        raise RowError(
            f"task {task}: the pool has {supply['easy']} easy, {supply['medium']} medium and {supply['hard']} hard "
            f"rows, which cannot be balanced to {dict(target)}; change pool.intended or pool.recipes, or add rows"
        )
    return total


def _fitting(part: pl.DataFrame, total: int, target: Mapping[Bucket, float]) -> dict[Bucket, int]:
    """Split `total` rows into the target shares, or fewer if rounding would require more than a bucket has."""
    supply = _supply(part)
    while any(count > supply[bucket] for bucket, count in share_out(total, target).items()):
        total -= 1
    return share_out(total, target)
