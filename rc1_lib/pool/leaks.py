"""Rows that contain a question of the shadow set, as the gate `leakage` measures it and the builder too."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rc1_lib.config.thresholds import LeakageGate
from rc1_lib.rows.spoken import question_texts, spoken
from rc1_lib.runtime.batches import slices
from rc1_lib.text.leak_search import Leaks, LeakSearch


def search_rows(
    rows: pl.DataFrame, shadow: pl.DataFrame, limits: LeakageGate, template_texts: Sequence[str]
) -> tuple[Leaks, int]:
    """Search all that the rows say for the shadow set's questions and ids.

    Args:
        limits: length of n-grams, and the shares above which a window is reported or is a leak.
        template_texts: texts whose n-grams are ignored.

    Returns:
        What was found, and how many shadow questions could be searched for.
    """
    search = LeakSearch(
        question_texts(shadow), question_texts(rows), limits, templates=template_texts,
        ids=pl.concat([shadow.select(id=name).with_row_index("held") for name in ("id", "source_id")]),
    )  # fmt: skip
    return search.over(spoken(rows[part]) for part in slices(rows.height)), search.checkable
