"""The penalty for asking where nothing is missing."""

from __future__ import annotations

import polars as pl


def over_clarification_penalty(c: int, needs_clarification: bool, *, alpha: float, cap: int) -> float:
    """`alpha * min(c, cap)` if nothing was missing, else 0; to be subtracted from the main reward.

    Args:
        c: clarifying questions asked in the dialogue, at least 0.
        needs_clarification: whether something was missing from the prompt.
        alpha: penalty for one question.
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
        alpha: penalty for one question.
        cap: most questions that are penalised.

    Raises:
        ValueError: for a negative penalty or cap; the caller checks the counts.
    """
    if alpha < 0 or cap < 0:
        raise ValueError(f"alpha and cap must not be negative, found alpha={alpha}, cap={cap}")
    price = alpha * pl.min_horizontal(c, pl.lit(cap, dtype=pl.Int64)).cast(pl.Float64)
    known = needs_clarification.is_not_null() & c.is_not_null()
    return pl.when(known).then(pl.when(needs_clarification).then(0.0).otherwise(price))
