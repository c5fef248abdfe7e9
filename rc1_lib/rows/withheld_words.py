"""The words that stand in place of what a row withholds.

If they stand in every prompt that needs a clarification and in no other, a rule on them asks as well as any policy.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl


def pattern_of(words: Iterable[str]) -> str | None:
    """Return a regular expression of polars that finds one of the words, whole and in any case; None without words."""
    # Longest first: "some money" before "some"
    parts = [_whole(one) for one in sorted({one.casefold() for one in words}, key=lambda one: (-len(one), one))]
    return f"(?i)(?:{'|'.join(parts)})" if parts else None


def _whole(words: str) -> str:
    """Chinese words and those in brackets need no edges."""
    edges = [r"\b" if mark.isascii() and mark.isalnum() else "" for mark in (words[0], words[-1])]
    return f"{edges[0]}{pl.escape_regex(words)}{edges[1]}"
