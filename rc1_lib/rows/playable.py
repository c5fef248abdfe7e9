"""Whether a row contains everything that the environment needs to play its dialogue."""

from __future__ import annotations

import polars as pl

from rc1_lib.records import Row

UNPLAYABLE = "the user's replies when asked (`user_replies`, and `slot` if something is missing)"


def is_playable(row: Row) -> bool:
    """Return whether the row contains its user's replies; rows without them are valid, but cannot be played."""
    replies = row.get("user_replies")
    if replies is None or not replies.get("otherwise"):
        return False
    return bool(replies.get("gives")) or not row["needs_clarification"]


def unplayable(rows: pl.DataFrame) -> int:
    """Count the rows that cannot be played, in a frame that `check_rows` has accepted."""
    return rows["user_replies"].struct.field("otherwise").null_count()


def about_unplayable(lacking: int) -> str:
    """Explain what it means that `lacking` rows cannot be played; empty if there are none."""
    if not lacking:
        return ""
    return (
        f"{lacking:,} rows lack {UNPLAYABLE}: gates read them, but they cannot be played, and training leaves them "
        f"out; add these keys to the rows (docs/how-to/own-source.md), or build the pool from questions"
    )
