"""The old score and the new reward as columns, including every term, so that a row can be audited by hand.

    old    = sum of old_weights[d] * d                        terms: old.<d>
    main   = sum of weights[d] * d                            terms: new.<d>
    reward = main - penalty
    total  = main * factor - penalty

Unknown values are null: a dialogue without a weighed criterion has no score, never the score 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.numbers.sums import sum_in_order
from rc1_lib.records import BUCKETS
from rc1_lib.reward.difficulty_factor import difficulty_factors
from rc1_lib.reward.overclarification import over_clarification_penalties

OLD, NEW = "old.", "new."


def add_old_score(frame: pl.DataFrame, weights: Mapping[str, float]) -> pl.DataFrame:
    """Add `old`, and one column `old.<d>` for each weighed criterion.

    Raises:
        RowError: when `frame` lacks a criterion.
    """
    _require_columns(frame, weights)
    return frame.with_columns(_terms(OLD, weights)).with_columns(old=_sum(OLD, weights))


def add_main(frame: pl.DataFrame, weights: Mapping[str, float]) -> pl.DataFrame:
    """Add `main`, the judged score, and one column `new.<d>` for each weighed criterion.

    This is the only place that computes it, so that gates and training use the same number, to the last bit.

    Raises:
        RowError: when `frame` lacks a criterion.
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
    """Add `main, penalty, reward, factor, total`, and one column `new.<d>` for each weighed criterion.

    Args:
        frame: the criteria (Float64), `clarifications`, `needs_clarification` and `bucket` of each dialogue.
        weights: of the criteria.
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
    # A criterion of weight 0 is ignored, so it need not be known.
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
