"""The rows of an exported world: those of a pool that can be played, each with its measured difficulty."""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl

from rc1_lib.config import RunConfig
from rc1_lib.difficulty.derived import METRICS
from rc1_lib.environment.world import World
from rc1_lib.errors import RC1Error
from rc1_lib.records import BUCKETS, Bucket, MeasuredRow, Row
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.playable import is_playable
from rc1_lib.run import Run
from rc1_lib.training.rows import is_kept_back
from rc1_lib.worlds.spec import Part

_NEEDED = ("id", "source_id", "task", "lang", "messages", "answer", "needs_clarification", "solved")


def world_rows(run: Run, pool: Path, part: Part) -> list[MeasuredRow]:
    """The rows of a part of `pool` that a world can be opened on, in its order.

    Raises:
        RC1Error: when the pool or the metrics cannot be read, a row was never measured, or none can be played.
    """
    read_rows(pool)  # which says what is wrong with a line, by its number
    bucket_of = _measured(run)
    rows: list[MeasuredRow] = []
    for number, line in enumerate(pool.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        row: Row = orjson.loads(line)
        if missing := [name for name in _NEEDED if row.get(name) is None]:
            raise RC1Error(f"{pool}, line {number}: has no {', '.join(missing)}; build the pool with rc1 build-pool")
        if not is_playable(row) or not _belongs(row, part, run.config):
            continue
        if bucket_of.get(row["id"]) not in BUCKETS:
            raise RC1Error(
                f"{pool}: row '{row['id']}' was never measured in {METRICS.path(run)}, but its difficulty "
                f"decides what it pays; run rc1 difficulty-metrics on this pool"
            )
        World(row)  # refuses a row that no world can be opened on
        rows.append({**row, "bucket": bucket_of[row["id"]]})
    if not rows:
        of_part = "" if part is Part.ALL else f" and is of its part '{part}'"
        raise RC1Error(f"{pool}: holds no row that can be played{of_part}; build the pool with rc1 build-pool")
    return rows


def _measured(run: Run) -> dict[str, Bucket]:
    """Row id -> bucket."""
    METRICS.sha256(run)  # which says what writes them where they are missing
    path = METRICS.path(run)
    try:
        measured = pl.read_ndjson(path, schema_overrides={"id": pl.String}).select("id", "bucket")
    except pl.exceptions.PolarsError as error:
        raise RC1Error(f"{path}: cannot be read as metrics ({error}); write them anew: {METRICS.command}") from None
    return dict(measured.iter_rows())


def _belongs(row: Row, part: Part, config: RunConfig) -> bool:
    return part is Part.ALL or is_kept_back(row, config) == (part is Part.EVALUATION)


def rows_bytes(rows: list[MeasuredRow]) -> bytes:
    """One row a line."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)
