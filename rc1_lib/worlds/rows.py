"""The rows of an exported world: those of a pool that can be played, each with its measured difficulty."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl

from rc1_lib.difficulty.derived import METRICS
from rc1_lib.environment.world import World
from rc1_lib.errors import RC1Error
from rc1_lib.records import MeasuredRow, Row
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.playable import is_playable
from rc1_lib.run import Run


def world_rows(run: Run, pool: Path) -> list[MeasuredRow]:
    """The rows of `pool` that a world can be opened on, in its order.

    Raises:
        RC1Error: when the pool or the metrics cannot be read, a row was never measured, or none can be played.
    """
    read_rows(pool)  # which says what is wrong with a line, by its number
    METRICS.sha256(run)  # which says what writes them where they are missing
    measured = pl.read_ndjson(METRICS.path(run), schema_overrides={"id": pl.String})
    bucket_of = dict(measured.select("id", "bucket").iter_rows())
    rows: list[MeasuredRow] = []
    for line in pool.read_bytes().splitlines():
        if not line.strip():
            continue
        row: Row = orjson.loads(line)
        if not is_playable(row):
            continue
        if row["id"] not in bucket_of:
            raise RC1Error(
                f"{pool}: row '{row['id']}' was never measured in {METRICS.path(run)}, but its difficulty "
                f"decides what it pays; run rc1 difficulty-metrics on this pool"
            )
        World(row)  # refuses a row that no world can be opened on
        rows.append({**row, "bucket": bucket_of[row["id"]]})
    if not rows:
        raise RC1Error(f"{pool}: holds no row that can be played; build the pool with rc1 build-pool")
    return rows


def rows_bytes(rows: list[MeasuredRow]) -> bytes:
    """One row a line."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)
