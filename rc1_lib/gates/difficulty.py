"""Difficulty of the balanced pool: bucket shares, limits of a row, and how much evidence the prompts give away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from rc1_lib.checks import at_least, at_most, number, offenders, parts
from rc1_lib.config.thresholds import DifficultyGate, MixGate
from rc1_lib.evidence import Evidence
from rc1_lib.gates.mix import share_checks
from rc1_lib.gates.spec import GateSpec, Round
from rc1_lib.records import BUCKETS, Check, GateResult, Task

# The original script's list of quick diagnoses, with this project's keys.
_HARD = (
    "raise difficulty.target.hard or pool.intended.hard; "
    "if rows have too few turns, raise pool.clarify_rate or pool.recipes.hard.detours, if too few sums (ops_numeric), "
    "add questions that take several"
)
_EASY = "lower difficulty.target.easy or pool.intended.easy"
_BAND = "set difficulty.target inside the bounds, and run `rc1 difficulty-bucketize` again"
_LENGTH = "raise gates.difficulty.len_max or cut long pages, and check the base model's context length"
_TURNS = "lower pool.max_turns"
_HOPS = "lower pool.recipes.hard.detours"
_OVERLAP_HIGH = "quote less evidence (lower pool.recipes.*.overlap)"
_OVERLAP_LOW = "quote more evidence (pool.recipes.*.overlap)"


def difficulty_gate(
    metrics: pl.DataFrame,
    balanced: pl.DataFrame,
    thresholds: DifficultyGate,
    by_task: Sequence[str],
    tolerance: MixGate,
    mix: Mapping[Task, float],
) -> GateResult:
    """Check the rows of `metrics` whose `id` is in `balanced`, overall and per task.

    Args:
        metrics: one line for each row of the pool, as returned by `measure`.
        balanced: the balanced pool, column `id`.
        by_task: the tasks that are also checked separately.
        tolerance: allowed deviation of the balanced pool's task mix, which training reads.
        mix: the configured shares.
    """
    chosen = metrics.join(balanced.select("id"), on="id", how="semi")
    checks = share_checks("balanced share", chosen, tolerance, mix)
    for suffix, part in parts(chosen, by_task):
        checks += _checks(part, thresholds, suffix)
    beyond = chosen.filter(
        (pl.col("len_tokens") > thresholds.len_max)
        | (pl.col("turns") > thresholds.turns_max)
        | (pl.col("tool_hops") > thresholds.tool_hops_max)
    )
    return GateResult(
        "difficulty",
        tuple(checks),
        offenders=offenders(beyond.select("id", "task", "len_tokens", "turns", "tool_hops"), "beyond a limit"),
    )


def _checks(part: pl.DataFrame, limits: DifficultyGate, suffix: str) -> list[Check]:
    easy, medium, hard = (part.filter(pl.col("bucket") == bucket) for bucket in BUCKETS)
    easy_overlap, hard_overlap = _median(easy), _median(hard)
    return [
        at_least(f"hard share{suffix}", _share(hard, part), limits.min_hard_pct, _HARD),
        at_most(f"hard share, upper bound{suffix}", _share(hard, part), limits.max_hard_pct, _BAND),
        at_least(f"medium share{suffix}", _share(medium, part), limits.min_medium_pct, _BAND),
        at_most(f"medium share, upper bound{suffix}", _share(medium, part), limits.max_medium_pct, _BAND),
        at_least(f"easy share, lower bound{suffix}", _share(easy, part), limits.min_easy_pct, _BAND),
        at_most(f"easy share{suffix}", _share(easy, part), limits.max_easy_pct, _EASY),
        at_most(f"len_tokens, highest{suffix}", _highest(part, "len_tokens"), limits.len_max, _LENGTH),
        at_most(f"turns, highest{suffix}", _highest(part, "turns"), limits.turns_max, _TURNS),
        at_most(f"tool_hops, highest{suffix}", _highest(part, "tool_hops"), limits.tool_hops_max, _HOPS),
        at_least(f"clue_overlap, easy median{suffix}", easy_overlap, limits.easy_median_min, _OVERLAP_LOW),
        at_most(
            f"clue_overlap, easy median, upper bound{suffix}", easy_overlap, limits.clue_overlap_max_easy, _OVERLAP_HIGH
        ),
        at_most(f"clue_overlap, hard median{suffix}", hard_overlap, limits.hard_median_max, _OVERLAP_HIGH),
        at_least(
            f"clue_overlap, hard median, lower bound{suffix}", hard_overlap, limits.clue_overlap_min_hard, _OVERLAP_LOW
        ),
    ]


def _share(bucket: pl.DataFrame, part: pl.DataFrame) -> float:
    return bucket.height / part.height if part.height else float("nan")


def _median(part: pl.DataFrame) -> float:
    return number(part["clue_overlap"].median())


def _highest(part: pl.DataFrame, column: str) -> float:
    return number(part[column].max())


def _judge(evidence: Evidence, _: Round) -> GateResult:
    config, gates = evidence.run.config, evidence.run.config.gates
    metrics, balanced = evidence.metrics(), evidence.rows("balanced")
    return difficulty_gate(metrics, balanced, gates.difficulty, evidence.tasks, gates.mix, config.datasets)


SPEC = GateSpec("difficulty", "is the difficulty balanced", ("metrics", "balanced"), _judge)
