"""The rows at fault, as files next to a gate's report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import polars as pl

from rc1_lib.errors import RowError
from rc1_lib.pool.derived import POOL
from rc1_lib.records import GateResult
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import atomic_write


def write_offenders(run: Run, file: str, result: GateResult) -> str | None:
    """Write a gate's rows at fault; where there are none, remove an earlier file.

    Each row of the pool is written with the `source_id` of its question: ids of rows are RC1's own, and what has to be
    mended often lies in the source.

    Args:
        run: whose workspace.
        file: where, relative to the workspace.
        result: the verdict.

    Returns:
        `file`, or None where there is nothing to write.
    """
    path = run.workspace.path(file)
    if not result.offenders:
        path.unlink(missing_ok=True)
        return None
    with atomic_write(path) as stream:
        stream.writelines(orjson.dumps(record) + b"\n" for record in _with_sources(run, result))
    return file


def _with_sources(run: Run, result: GateResult) -> Iterator[dict[str, Any]]:
    ids = [record["id"] for record in result.offenders if isinstance(record.get("id"), str)]
    try:
        rows = read_rows(POOL.path(run)).filter(pl.col("id").is_in(ids)).select("id", "source_id")
    except RowError:  # the gates that read it have failed for that already
        rows = pl.DataFrame({"id": [], "source_id": []})
    sources: Mapping[str, str] = dict(rows.iter_rows())
    for record in result.offenders:
        of_a_row = {"source_id": sources[record["id"]]} if record.get("id") in sources else {}
        yield {**record, **of_a_row}
