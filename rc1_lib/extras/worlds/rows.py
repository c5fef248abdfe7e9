"""The rows of an exported environment: the playable rows of a pool, with their measured difficulty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

from rc1_lib.config.run_config import RunConfig
from rc1_lib.difficulty.derived import METRICS
from rc1_lib.difficulty.steps import read_metrics
from rc1_lib.environment.world import World
from rc1_lib.errors import RC1Error
from rc1_lib.extras.worlds.spec import Part
from rc1_lib.provenance.derived import Artifact
from rc1_lib.records import Bucket, MeasuredRow, Row
from rc1_lib.rows.frame import read_rows
from rc1_lib.rows.lines import foreign_lines
from rc1_lib.rows.playable import is_playable
from rc1_lib.run import Run
from rc1_lib.training.rows import is_kept_back, unlike
from rc1_lib.workspace.artifacts import FileState
from rc1_lib.workspace.input_files import open_text

_NEEDED = (
    "id", "source", "source_id", "task", "lang", "question", "support", "messages", "answer", "needs_clarification",
    "solved",
)  # fmt: skip


def world_rows(run: Run, pool: Path, part: Part) -> list[MeasuredRow]:
    """Return the playable rows of a part of `pool`, in its order.

    Training and evaluation are those of `rc1 train`: rows in its languages, and no training question repeats a held-out
    one. What depends on a tokenizer is not left out here.

    Raises:
        RC1Error: if the pool cannot be read, its rows do not match the metrics, or none can be played.
    """
    read_rows(pool)  # reports errors with line numbers
    config = run.config
    spoken = [row for row in _playable(pool) if part is Part.ALL or row["lang"] in config.training.languages]
    rows = [row for row in spoken if _belongs(row, part, config)]
    if part is Part.TRAINING:
        rows, _ = unlike([row for row in spoken if is_kept_back(row, config)], rows, config)
    if not rows:
        of_part = "" if part is Part.ALL else f" and is of its part '{part}'"
        raise RC1Error(f"{pool}: found no row that can be played{of_part}; build the pool with rc1 build-pool")
    bucket_of = _measured(run, pool)
    return [{**row, "bucket": bucket_of[row["id"]]} for row in rows]


def check_fresh(run: Run, one: Artifact) -> None:
    """Reject files that were not made from the current inputs.

    Raises:
        RC1Error: saying what is wrong, and which command writes it again.
    """
    if (state := one.state(run)) is not FileState.FRESH:
        raise RC1Error(f"{one.path(run)}: is {state}, expected {FileState.FRESH}; write it again: {one.command}")


def _playable(pool: Path) -> Iterator[Row]:
    with open_text(pool) as stream:
        lines = stream.readlines()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row: Row = orjson.loads(line)
        if missing := [name for name in _NEEDED if row.get(name) is None]:
            raise RC1Error(f"{pool}, line {number}: has no {', '.join(missing)}; build the pool with rc1 build-pool")
        if is_playable(row):
            World(row)  # rejects rows without an environment
            yield row


def _measured(run: Run, pool: Path) -> dict[str, Bucket]:
    """Map row ids to buckets. Every pool has the same ids, so the lines themselves show which rows were measured."""
    check_fresh(run, METRICS)
    measured = run.workspace.path(run.config.pool.path)
    if foreign := foreign_lines(pool, measured):
        raise RC1Error(
            f"{pool}: {foreign:,} of its lines are not in {measured}, whose rows were measured, but a row's difficulty "
            f"decides its reward; use rows of that pool, or name their pool with --set pool.path=FILE and "
            f"run {METRICS.command}"
        )
    return dict(read_metrics(run).select("id", "bucket").iter_rows())


def _belongs(row: Row, part: Part, config: RunConfig) -> bool:
    return part is Part.ALL or is_kept_back(row, config) == (part is Part.EVALUATION)


def rows_bytes(rows: list[MeasuredRow]) -> bytes:
    """Return JSON lines, one row per line."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)
