"""Whether a row holds all that a dialogue world is made of."""

from __future__ import annotations

import polars as pl

from rc1_lib.records import Row

UNPLAYABLE = "the user's replies when asked (`user_replies`, and `slot` if something is missing)"


def is_playable(row: Row) -> bool:
    """Whether the row holds what its user says when asked: other rows are sound, but cannot be played."""
    replies = row.get("user_replies")
    if replies is None or not replies.get("otherwise"):
        return False
    return bool(replies.get("gives")) or not row["needs_clarification"]


def unplayable(rows: pl.DataFrame) -> int:
    """How many rows of a frame, which `check_rows` has accepted, cannot be played."""
    return rows["user_replies"].struct.field("otherwise").null_count()


def about_unplayable(lacking: int) -> str:
    """What there is to know of so many rows that cannot be played; empty where there are none."""
    if not lacking:
        return ""
    return (
        f"{lacking:,} rows lack {UNPLAYABLE}: gates read them, but they cannot be played, and training leaves them "
        f"out; add these keys to the rows (docs/how-to/own-source.md), or build the pool from questions"
    )
