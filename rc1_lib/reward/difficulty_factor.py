"""Slightly more reward for hard rows and less for easy ones, so that training does not favour easy rows."""

from __future__ import annotations

import polars as pl

from rc1_lib.records import Bucket


def difficulty_factor(bucket: Bucket, beta: float) -> float:
    """`1 + beta * (is_hard - is_easy)`, the factor on the base reward. `beta` is usually 0.05 to 0.10."""
    return 1.0 + beta * ((bucket == "hard") - (bucket == "easy"))


def difficulty_factors(bucket: pl.Expr, beta: float) -> pl.Expr:
    """`difficulty_factor` over a column of buckets (Float64); null for a null bucket."""
    return 1.0 + beta * ((bucket == "hard").cast(pl.Float64) - (bucket == "easy").cast(pl.Float64))
