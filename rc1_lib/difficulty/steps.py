"""Write the difficulty metrics, the balanced pool and the difficulty report."""

from __future__ import annotations

import hashlib
from typing import Any

import polars as pl

from rc1_lib.difficulty.buckets import balance
from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.difficulty.features import cached_metrics, measure
from rc1_lib.difficulty.report import difficulty_report
from rc1_lib.errors import RowError
from rc1_lib.rows.frame import METRIC_TYPES, cache_part, read_rows
from rc1_lib.rows.lines import lines_kept, seen
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import recorded_write, write_json
from rc1_lib.workspace.input_files import open_text

REPORT = "reports/rc1/difficulty_report.json"


def write_metrics(run: Run) -> pl.DataFrame:
    """Measure every row of the pool and write one JSON line per row.

    If this process wrote the same pool, it has measured its rows already and does not measure them again.

    Raises:
        RowError: when the pool cannot be read.
    """
    path = run.workspace.path(run.config.pool.path)
    from rc1_lib.rows.schema import check_rows

    rows = check_rows(read_rows(path), path)
    inputs = METRICS.inputs(run)
    metrics = cached_metrics(inputs["pool"])
    if metrics is None:
        metrics = measure(rows)
    manifest = {"kind": METRICS.name, "inputs": inputs, "rows": metrics.height}
    with recorded_write(run.workspace, run.config.difficulty.metrics_path, manifest) as stream:
        metrics.write_ndjson(stream)
    return metrics


def read_metrics(run: Run) -> pl.DataFrame:
    """Read and check the metrics.

    Raises:
        RowError: when the file is missing or does not hold metrics.
    """
    path = run.workspace.path(run.config.difficulty.metrics_path)
    if not path.exists():
        raise RowError(f"{path}: file not found; write it with `rc1 difficulty-metrics`")
    try:
        metrics = pl.read_ndjson(path, schema=pl.Schema(METRIC_TYPES))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RowError(f"{path}: not a file of metrics ({error}); write it with `rc1 difficulty-metrics`") from None
    from rc1_lib.rows.schema import check_metrics

    return check_metrics(metrics, path)


def write_balanced(run: Run) -> dict[str, Any]:
    """Choose the balanced pool's rows and copy their lines, byte for byte, from the pool.

    Raises:
        RowError: when a task cannot be balanced, or the metrics are not of the pool's rows.
    """
    metrics = read_metrics(run)
    chosen = balance(metrics, run.config.difficulty.target, run.config.datasets, run.config.pool.seed)
    path = run.workspace.path(run.config.pool.path)
    ids = read_rows(path)["id"]
    if not ids.equals(metrics["id"]):
        raise RowError(f"{path}: the metrics were measured on other rows; run `rc1 difficulty-metrics` again")
    wanted = ids.is_in(chosen["id"].implode()).to_list()
    manifest = {"kind": BALANCED.name, "inputs": BALANCED.inputs(run), "rows": chosen.height, "of": ids.len()}
    read, written = hashlib.sha256(), hashlib.sha256()
    with (
        recorded_write(run.workspace, run.config.difficulty.balanced_path, manifest) as stream,
        open_text(path) as pool,
    ):
        stream.writelines(seen(lines_kept(seen(pool, read.update), wanted), written.update))
    cache_part(written.digest(), read.digest(), wanted)
    return manifest


def write_report(run: Run) -> None:
    """Write the difficulty report: counts, quantiles and histograms of the pool and the balanced pool.

    Raises:
        RowError: when the metrics or the balanced pool cannot be read.
    """
    balanced = read_rows(run.workspace.path(run.config.difficulty.balanced_path))
    write_json(run.workspace.path(REPORT), difficulty_report(read_metrics(run), balanced["id"]))
