"""The rows of an export: those of the balanced pool that training may learn from, with their measured difficulty."""

from __future__ import annotations

import io

import orjson

from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.errors import RC1Error
from rc1_lib.provenance.pinned_files import read_vouched
from rc1_lib.records import MeasuredRow, Row
from rc1_lib.run import Run
from rc1_lib.training.rows import buckets_and_words, is_kept_back, unfit, unlike


def training_rows(run: Run) -> list[MeasuredRow]:
    """Return the rows in the pool's order.

    They are those of `rc1 train`: playable, in its languages, and none repeats a held-out question. What depends on a
    tokenizer is not left out here.

    Raises:
        RC1Error: if pool or metrics are missing or differ from the ticket, or no row is left.
    """
    config = run.config
    buckets, _ = buckets_and_words(run)
    pool = read_vouched(run, BALANCED.name, BALANCED.path(run))
    rows: list[Row] = [row for row in map(orjson.loads, io.BytesIO(pool)) if not unfit(row, config)]
    held_out = [row for row in rows if is_kept_back(row, config)]
    train, _ = unlike(held_out, [row for row in rows if not is_kept_back(row, config)], config)
    if not train:
        raise RC1Error(
            f"{BALANCED.path(run)}: found no row that training may learn from; add training.languages, or "
            "build the pool again with rc1 build-pool"
        )
    return [{**row, "bucket": buckets[row["id"]]} for row in train]
