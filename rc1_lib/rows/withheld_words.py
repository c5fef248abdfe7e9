"""The words that stand in place of what a row withholds.

If they stand in every prompt that needs a clarification and in no other, a rule on them asks as well as any policy.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

_PART = 500
"""Words of one regular expression, which may not be larger than the engine allows."""


def holding_one_of(texts: pl.Series, words: Iterable[str | None]) -> pl.Series:
    """Return for each text whether it holds one of the words, whole and in any case."""
    known = sorted({word.casefold() for word in words if word})
    found = pl.repeat(value=False, n=len(texts), eager=True, dtype=pl.Boolean)
    for start in range(0, len(known), _PART):
        found |= texts.str.contains(f"(?i)(?:{'|'.join(map(_whole, known[start : start + _PART]))})")
    return found


def _whole(word: str) -> str:
    """Chinese words and those in brackets need no edges."""
    edges = [r"\b" if mark.isascii() and mark.isalnum() else "" for mark in (word[0], word[-1])]
    return f"{edges[0]}{pl.escape_regex(word)}{edges[1]}"
