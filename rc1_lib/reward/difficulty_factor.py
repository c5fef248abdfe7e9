"""A little more reward for hard rows, a little less for easy ones, so that easy rows are not farmed."""

from __future__ import annotations

import polars as pl

from rc1_lib.records import Bucket


def difficulty_factor(bucket: Bucket, beta: float) -> float:
    """`1 + beta * (is_hard - is_easy)`; the base reward is multiplied by it. `beta` is 0.05 to 0.10 as a rule."""
    return 1.0 + beta * ((bucket == "hard") - (bucket == "easy"))


def difficulty_factors(bucket: pl.Expr, beta: float) -> pl.Expr:
    """`difficulty_factor` over a column of buckets (Float64); null where the bucket is null."""
    return 1.0 + beta * ((bucket == "hard").cast(pl.Float64) - (bucket == "easy").cast(pl.Float64))
