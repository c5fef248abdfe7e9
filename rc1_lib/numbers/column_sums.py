"""Numbers of several columns added up in the columns' order.

polars adds columns up in whatever order its threads come to them, and the order decides the last bit of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add

import polars as pl


def sum_in_order(columns: Sequence[str]) -> pl.Expr:
    """The sum of these columns, the first one first; null where one of them is."""
    return reduce(add, map(pl.col, columns), pl.lit(0.0))
