"""Reproducible sums: integers in given shares, and columns added in a fixed order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import TypeVar

import polars as pl

Name = TypeVar("Name", bound=str)


def apportion(total: int, shares: Mapping[Name, float]) -> dict[Name, int]:
    """Split `total` into integers in the given shares, by the method of largest remainders; ties go by name."""
    exact = {name: total * share for name, share in shares.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (counts[name] - exact[name], name))
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def sum_in_order(columns: Sequence[str]) -> pl.Expr:
    """Add these columns in the given order; null if one of them is null.

    polars adds columns in the order in which its threads reach them, and the order decides the last bit of a sum.
    """
    return reduce(add, map(pl.col, columns), pl.lit(0.0))
