"""The vote of eight features, and resampling to a target distribution without repeating a row."""

from __future__ import annotations

import math

import polars as pl

from rc1_lib.config import Difficulty
from rc1_lib.errors import RowError
from rc1_lib.records import BUCKETS, Bucket


def vote(config: Difficulty) -> pl.Expr:
    """The bucket that most features vote for; ties go to the harder one."""
    votes = [_rising(name, config) for name in config.bounds if name != "clue_overlap"]
    votes += [_falling("clue_overlap", config), _clarification(config)]
    easy, medium, hard = (pl.sum_horizontal([ballot == bucket for ballot in votes]) for bucket in BUCKETS)
    return (
        pl.when((hard >= medium) & (hard >= easy))
        .then(pl.lit("hard"))
        .when(medium >= easy)
        .then(pl.lit("medium"))
        .otherwise(pl.lit("easy"))
    )


_WHOLE = ("turns", "tool_hops", "ops_numeric", "entities")


def _rising(name: str, config: Difficulty) -> pl.Expr:
    """Counts include their bounds (<= easy, >= hard), as the table does; lengths and densities exclude them."""
    bounds, value = config.bounds[name], pl.col(name)
    whole = name in _WHOLE
    is_easy = value <= bounds.easy if whole else value < bounds.easy
    is_hard = value >= bounds.hard if whole else value > bounds.hard
    return _ballot(is_easy, is_hard)


def _falling(name: str, config: Difficulty) -> pl.Expr:
    bounds, value = config.bounds[name], pl.col(name)
    return _ballot(value > bounds.easy, value < bounds.hard)


def _clarification(config: Difficulty) -> pl.Expr:
    needs = pl.col("needs_clarification")
    return _ballot(~needs, needs & (pl.col("turns") >= config.clarification_hard_turns))


def _ballot(is_easy: pl.Expr, is_hard: pl.Expr) -> pl.Expr:
    return pl.when(is_hard).then(pl.lit("hard")).when(is_easy).then(pl.lit("easy")).otherwise(pl.lit("medium"))


def quotas(supply: dict[Bucket, int], target: dict[Bucket, float]) -> dict[Bucket, int]:
    """The largest whole numbers in the target shares that the supply can fill.

    Hard is rounded up and easy down, so that rounding never breaks 'hard at least' or 'easy at most'.
    """
    sizes = [math.floor(supply[bucket] / target[bucket]) for bucket in BUCKETS if target[bucket] > 0]
    for total in range(min(sizes), 0, -1):
        hard = math.ceil(total * target["hard"] - 1e-9)
        easy = math.floor(total * target["easy"] + 1e-9)
        wanted: dict[Bucket, int] = {"easy": easy, "medium": total - hard - easy, "hard": hard}
        if all(wanted[bucket] <= supply[bucket] for bucket in BUCKETS):
            return wanted
    return {"easy": 0, "medium": 0, "hard": 0}


def balance(metrics: pl.DataFrame, target: dict[Bucket, float], tasks: list[str], seed: int) -> pl.DataFrame:
    """Choose rows, per task, so that the buckets stand in the target shares and no row is taken twice.

    Args:
        metrics: one line a row with `id`, `task`, `bucket`.
        target: shares of easy, medium and hard.
        tasks: the tasks to balance, each by itself.
        seed: decides which of the surplus rows are left out.

    Returns:
        Column `id`, in the order of `metrics`.

    Raises:
        RowError: when a task lacks rows of a bucket altogether; the sentence names the knob to turn.
    """
    chosen = []
    for task in tasks:
        mine = metrics.filter(pl.col("task") == task)
        supply: dict[Bucket, int] = {bucket: int((mine["bucket"] == bucket).sum()) for bucket in BUCKETS}
        wanted = quotas(supply, target)
        if not sum(wanted.values()):
            raise RowError(
                f"task {task}: the pool holds {supply['easy']} easy, {supply['medium']} medium and {supply['hard']} "
                f"hard rows, which cannot be balanced to {dict(target)}; change pool.intended or pool.recipes, "
                f"or build more rows"
            )
        chosen += [
            mine.filter(pl.col("bucket") == bucket).sample(count, seed=seed, shuffle=True)
            for bucket, count in wanted.items()
        ]
    return metrics.join(pl.concat(chosen).select("id"), on="id", how="semi", maintain_order="left").select("id")
