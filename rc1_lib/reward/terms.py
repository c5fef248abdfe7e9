"""The old score and the new reward as columns, including every term, so that a row can be audited by hand.

    old    = sum of old_weights[d] * d                        terms: old.<d>
    main   = sum of weights[d] * d                            terms: new.<d>
    reward = main - penalty
    total  = main * factor - penalty

The penalty is for asking where nothing is missing; the factor pays slightly more for hard rows and less for easy ones,
so that training does not favour easy rows. Unknown values are null: a dialogue without a weighed dimension has no
score, never the score 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from rc1_lib.checks import at_least, at_most, equal, info, within
from rc1_lib.config.thresholds import WeightsGate
from rc1_lib.errors import RowError
from rc1_lib.numbers.sums import sum_in_order
from rc1_lib.records import BUCKETS, Bucket, Check

OLD, NEW = "old.", "new."


def add_old_score(frame: pl.DataFrame, weights: Mapping[str, float]) -> pl.DataFrame:
    """Add `old`, and one column `old.<d>` for each weighed dimension.

    Raises:
        RowError: when `frame` lacks a dimension.
    """
    _require_columns(frame, weights)
    return frame.with_columns(_terms(OLD, weights)).with_columns(old=_sum(OLD, weights))


def add_main(frame: pl.DataFrame, weights: Mapping[str, float]) -> pl.DataFrame:
    """Add `main`, the judged score, and one column `new.<d>` for each weighed dimension.

    This is the only place that computes it, so that gates and training use the same number, to the last bit.

    Raises:
        RowError: when `frame` lacks a dimension.
    """
    _require_columns(frame, weights)
    return frame.with_columns(_terms(NEW, weights)).with_columns(main=_sum(NEW, weights))


def add_reward(
    frame: pl.DataFrame,
    weights: Mapping[str, float],
    *,
    alpha: float,
    cap: int,
    beta: float,
    use_penalty: bool = True,
) -> pl.DataFrame:
    """Add `main, penalty, reward, factor, total`, and one column `new.<d>` for each weighed dimension.

    Args:
        frame: the dimensions (Float64), `clarifications`, `needs_clarification` and `bucket` of each dialogue.
        alpha: penalty for one needless question.
        cap: most needless questions that are penalised.
        beta: how much more a hard row counts, and an easy one less.
        use_penalty: False sets `penalty` to 0 everywhere.

    Raises:
        RowError: when a column is missing, a count is negative or a bucket is unknown.
        ValueError: for a negative penalty or cap.
    """
    _require_columns(frame, [*weights, "clarifications", "needs_clarification", "bucket"])
    _check(frame)
    penalty = pl.lit(0.0)
    if use_penalty:
        counts, needs = pl.col("clarifications"), pl.col("needs_clarification")
        penalty = over_clarification_penalties(counts, needs, alpha=alpha, cap=cap)
    main, priced, factor = pl.col("main"), pl.col("penalty"), pl.col("factor")
    return (
        add_main(frame, weights)
        .with_columns(penalty=penalty, factor=difficulty_factors(pl.col("bucket"), beta))
        .with_columns(reward=main - priced, total=main * factor - priced)
    )


def _terms(prefix: str, weights: Mapping[str, float]) -> list[pl.Expr]:
    # A dimension of weight 0 is ignored, so it need not be known.
    return [
        (weight * pl.col(name) if weight else pl.lit(0.0)).cast(pl.Float64).alias(f"{prefix}{name}")
        for name, weight in weights.items()
    ]


def _sum(prefix: str, weights: Mapping[str, float]) -> pl.Expr:
    return sum_in_order([f"{prefix}{name}" for name in weights])


def _require_columns(frame: pl.DataFrame, names: Iterable[str]) -> None:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise RowError(f"the rows lack {', '.join(missing)}, which the reward needs; add these columns first")


def _check(frame: pl.DataFrame) -> None:
    fewest = frame.select(pl.col("clarifications").min().cast(pl.Int64)).item()
    if fewest is not None and fewest < 0:
        raise RowError(f"'clarifications' contains {fewest}, expected counts of at least 0")
    unknown = set(frame["bucket"].drop_nulls().unique()) - set(BUCKETS)
    if unknown:
        raise RowError(
            f"'bucket' contains {', '.join(sorted(map(str, unknown)))}, expected {', '.join(BUCKETS)} or null"
        )


def over_clarification_penalty(c: int, needs_clarification: bool, *, alpha: float, cap: int) -> float:
    """`alpha * min(c, cap)` if nothing was missing, else 0; to be subtracted from the main reward.

    Args:
        c: clarifying questions asked in the dialogue, at least 0.
        needs_clarification: whether something was missing from the prompt.
        cap: most questions that are penalised.

    Raises:
        ValueError: for a negative count, penalty or cap.
    """
    if c < 0 or alpha < 0 or cap < 0:
        raise ValueError(f"c, alpha and cap must not be negative, found c={c}, alpha={alpha}, cap={cap}")
    return 0.0 if needs_clarification else alpha * min(c, cap)


def over_clarification_penalties(c: pl.Expr, needs_clarification: pl.Expr, *, alpha: float, cap: int) -> pl.Expr:
    """`over_clarification_penalty` over columns (Float64); null if it is unknown whether something was missing.

    Args:
        c: clarifying questions asked in each dialogue.
        needs_clarification: whether something was missing from each prompt.
        cap: most questions that are penalised.

    Raises:
        ValueError: for a negative penalty or cap; the caller checks the counts.
    """
    if alpha < 0 or cap < 0:
        raise ValueError(f"alpha and cap must not be negative, found alpha={alpha}, cap={cap}")
    price = alpha * pl.min_horizontal(c, pl.lit(cap, dtype=pl.Int64)).cast(pl.Float64)
    known = needs_clarification.is_not_null() & c.is_not_null()
    return pl.when(known).then(pl.when(needs_clarification).then(0.0).otherwise(price))


def difficulty_factor(bucket: Bucket, beta: float) -> float:
    """`1 + beta * (is_hard - is_easy)`, the factor on the base reward. `beta` is usually 0.05 to 0.10."""
    return 1.0 + beta * ((bucket == "hard") - (bucket == "easy"))


def difficulty_factors(bucket: pl.Expr, beta: float) -> pl.Expr:
    """`difficulty_factor` over a column of buckets (Float64); null for a null bucket."""
    return 1.0 + beta * ((bucket == "hard").cast(pl.Float64) - (bucket == "easy").cast(pl.Float64))


SUM_TOLERANCE = 1e-6
"""How far the sum of the weights may be from 1: far above rounding, and the specification's."""
_ADVICE = "calibrate the weights: rc1 weight-calib"


def shape_checks(content: Any, thresholds: WeightsGate, dimensions: Sequence[str]) -> tuple[Check, ...]:
    """Whether the weights are usable, wherever they come from."""
    raw = content.get("weights") if isinstance(content, Mapping) else None
    present = isinstance(raw, Mapping) and bool(raw)
    numbers = {
        str(name): float(value)
        for name, value in (raw.items() if isinstance(raw, Mapping) else ())
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    all_numbers = isinstance(raw, Mapping) and len(numbers) == len(raw)
    unknown = len(set(raw) - set(dimensions)) if isinstance(raw, Mapping) else 0
    lowest, highest = min(numbers.values(), default=math.nan), max(numbers.values(), default=math.nan)
    total = math.fsum(numbers.values()) if numbers else math.nan
    return (
        equal("weights present", present, True, _ADVICE),
        equal("every weight is a number", all_numbers, True, _ADVICE),
        at_least("smallest weight", lowest, 0.0, _ADVICE),
        at_most("largest weight", highest, thresholds.max_weight, f"no single dimension may dominate; {_ADVICE}"),
        within("sum", total, 1.0 - SUM_TOLERANCE, 1.0 + SUM_TOLERANCE, f"weights must sum to 1; {_ADVICE}"),
        equal("unknown dimensions", unknown, 0, f"weigh only {', '.join(dimensions)}"),
        info("dimensions", len(numbers)),
    )
