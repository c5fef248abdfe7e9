"""Work on very many rows a few thousand at a time, so that what it makes on the way never fills the memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

AT_ONCE = 4000
"""Rows of a part."""


def slices(count: int, at_once: int = 0) -> Iterator[slice]:
    """Where the parts of `count` rows lie, one behind the other; one part, of nothing, where there are none.

    Args:
        count: of all rows.
        at_once: rows of a part; 0 for `AT_ONCE`.
    """
    step = at_once or AT_ONCE
    for first in range(0, max(1, count), step):
        yield slice(first, min(first + step, count))


def in_parts(frame: pl.DataFrame, use: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """What `use` makes of a few thousand rows after another, one below the other.

    Args:
        frame: any number of rows.
        use: looks at every row by itself.
    """
    return pl.concat([use(frame[part]) for part in slices(frame.height)])
