"""Process many rows a few thousand at a time, so that intermediate results do not fill the memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import polars as pl

AT_ONCE = 4000
"""Rows per part."""


def slices(count: int, at_once: int = 0) -> Iterator[slice]:
    """Yield consecutive parts of `count` rows; one empty part if there are no rows.

    Args:
        at_once: rows per part; 0 for `AT_ONCE`.
    """
    step = at_once or AT_ONCE
    for first in range(0, max(1, count), step):
        yield slice(first, min(first + step, count))


def in_parts(frame: pl.DataFrame, use: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """Apply `use` to a few thousand rows at a time, and concatenate the results.

    Args:
        use: processes every row independently.
    """
    return pl.concat([use(frame[part]) for part in slices(frame.height)])


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause Python's cyclic garbage collector during work on very many small records.

    Records and rows have no cycles, so reference counting frees them at once. The collector scans all of them
    repeatedly, finds nothing, and takes a third of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
