"""Processes very many rows a few thousand at a time, so that intermediate results do not fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

AT_ONCE = 4000
"""Rows per part."""


def slices(count: int, at_once: int = 0) -> Iterator[slice]:
    """The consecutive parts of `count` rows; one empty part if there are no rows.

    Args:
        count: the number of rows.
        at_once: rows per part; 0 for `AT_ONCE`.
    """
    step = at_once or AT_ONCE
    for first in range(0, max(1, count), step):
        yield slice(first, min(first + step, count))


def in_parts(frame: pl.DataFrame, use: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Apply `use` to a few thousand rows at a time, and concatenate the results.

    Args:
        frame: any number of rows.
        use: treats every row independently.
    """
    return pl.concat([use(frame[part]) for part in slices(frame.height)])
