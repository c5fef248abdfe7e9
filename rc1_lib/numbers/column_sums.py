"""Adds several columns in a fixed order.

polars adds columns in the order in which its threads reach them, and the order decides the last bit of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import polars as pl


def sum_in_order(columns: Sequence[str]) -> pl.Expr:
    """The sum of these columns, starting with the first; null if one of them is."""
    return reduce(add, map(pl.col, columns), pl.lit(0.0))
