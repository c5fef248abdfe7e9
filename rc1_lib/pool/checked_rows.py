"""Read and check the rows of an artifact, once per process however many gates use them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import polars as pl

from rc1_lib.difficulty.derived import BALANCED
from rc1_lib.difficulty.steps import read_metrics
from rc1_lib.errors import RowError
from rc1_lib.pool.derived import POOL
from rc1_lib.provenance.derived import Artifact
from rc1_lib.rows.frame import read_rows
from rc1_lib.run import Run
from rc1_lib.workspace.file_hashes import sha256_file


def rows_of(run: Run, artifact: Artifact) -> pl.DataFrame:
    """Return the rows of the shadow set, the takes, the pool or the balanced pool.

    Raises:
        RowError: when the file is missing or has no valid rows.
    """
    path = artifact.path(run)
    frame = _rows(path, artifact.sha256(run), "pool" if artifact in (POOL, BALANCED) else "shadow")
    if isinstance(frame, str):
        raise RowError(frame)
    if artifact is not BALANCED:
        return frame
    from rc1_lib.rows.schema import check_balanced

    return check_balanced(frame, read_metrics(run), path)


@lru_cache(maxsize=4)
def _rows(path: Path, sha256: str, split: str) -> pl.DataFrame | str:
    """Return the rows or the error message: both are cached, since a fault takes as long to find."""
    from rc1_lib.rows.schema import check_rows

    frame: pl.DataFrame | str
    try:
        frame = check_rows(read_rows(path), path, split)
    except RowError as error:
        frame = str(error)
    if sha256_file(path) != sha256:
        raise RowError(f"{path}: the file changed while RC1 read it; run again when nothing writes to it")
    return frame
