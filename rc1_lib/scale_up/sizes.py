"""The sizes that a pool grows through. Each is a run with its own files, whose rows are a sample of the whole pool.

The whole pool is built at once, which takes a minute on one machine; only what is judged and paid for grows. Rows are
shuffled once, and a size takes the first rows of each task, so that a larger size contains every smaller one. The
pool's own order would not do, since the builder fills a scarce bucket with the first rows that fit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

import polars as pl

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.difficulty.steps import write_report
from rc1_lib.errors import RowError
from rc1_lib.numbers.sums import apportion
from rc1_lib.pool.checked_rows import rows_of
from rc1_lib.pool.derived import POOL
from rc1_lib.provenance.derived import Artifact, Build, Input
from rc1_lib.rows.lines import lines_kept
from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import recorded_write


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the growth.

    Attributes:
        smaller: number of rows before it; 0 at the beginning.
        size: number of rows after it.
    """

    smaller: int
    size: int


def steps(run: Run) -> list[Step]:
    """Return the steps from no rows to the whole pool.

    Raises:
        ConfigError: when the last size is not the pool's.
    """
    sizes = run.config.scale_up.sizes
    run.config.scale_up.check_last(run.config.pool.n)
    return [Step(smaller, size) for smaller, size in pairwise((0, *sizes))]


def sized(whole: Run, size: int) -> Run:
    """Return the run whose pool has `size` rows of the whole pool, with their metrics and balanced pool."""
    config = whole.config
    if size == config.pool.n:
        return whole
    pool = config.pool.model_copy(update={"n": size, "path": _with_size(config.pool.path, size)})
    difficulty = config.difficulty.model_copy(
        update={
            "metrics_path": _with_size(config.difficulty.metrics_path, size),
            "balanced_path": _with_size(config.difficulty.balanced_path, size),
        }
    )
    return replace(whole, config=config.model_copy(update={"pool": pool, "difficulty": difficulty}))


def _with_size(path: str, size: int) -> str:
    """Turn `data/rc1_seed.metrics.jsonl` into `data/rc1_seed_1000.metrics.jsonl`."""
    file = PurePosixPath(path)
    stem, dot, rest = file.name.partition(".")
    return str(file.with_name(f"{stem}_{size}{dot}{rest}"))


_KIND = "rows of a size"


def rows_artifact(whole: Run, size: int) -> Artifact:
    """Return the artifact of a size's rows; the last size is the pool itself."""
    if size == whole.config.pool.n:
        return POOL
    return Artifact(
        _KIND, lambda run: run.config.pool.path,
        lambda run: {"size": run.config.pool.n, "datasets": dict(run.config.datasets), "seed": run.config.pool.seed},
        "rc1_lib.scale_up.sizes.write_rows", "rc1 scale-up", (Input("pool", lambda _: POOL.sha256(whole)),),
        code="ticket",
    )  # fmt: skip


def grow(whole: Run, size: int, build: Build) -> list[str]:
    """Write the missing files of a size (rows, metrics, balanced pool), and return the paths of those written.

    Raises:
        RC1Error: when one of them was altered, or the pool has too few rows of a task.
    """
    run, rebuild = sized(whole, size), build == "always"
    POOL.check_ours(whole, rebuild=False)
    rows = rows_artifact(whole, size)
    written = []
    if rows is not POOL and rows.to_write(run, rebuild):
        write_rows(whole, size)
        written.append(rows.where(run))
    for artifact in (METRICS, BALANCED):
        if artifact.to_write(run, rebuild):
            artifact.build(run)
            written.append(artifact.where(run))
    if rows is POOL and BALANCED.where(run) in written:
        write_report(run)
    return written


def write_rows(whole: Run, size: int) -> None:
    """Write the rows of a size.

    Raises:
        RowError: when the pool cannot be read, or has too few rows of a task.
    """
    run, pool = sized(whole, size), POOL.path(whole)
    counts = apportion(size, whole.config.datasets)
    keep = _drawn(rows_of(whole, POOL)["task"], counts, whole.config.pool.seed, str(pool))
    manifest = {"kind": _KIND, "inputs": rows_artifact(whole, size).inputs(run), "rows": size, "of": len(keep)}
    with recorded_write(whole.workspace, run.config.pool.path, manifest) as stream, pool.open("rb") as lines:
        stream.writelines(lines_kept(lines, keep))


def _drawn(tasks: pl.Series, counts: Mapping[str, int], seed: int, file: str) -> list[bool]:
    """Return for each row whether it is among the first `counts` of its task in the shuffled order."""
    found = dict(tasks.value_counts().iter_rows())
    for task, count in counts.items():
        if found.get(task, 0) < count:
            raise RowError(
                f"{file}: has {found.get(task, 0)} rows of {task}, but scale_up.sizes needs {count} of them; "
                f"lower that size, or build the pool again with the current shares: rc1 build-pool --rebuild"
            )
    order = list(range(tasks.len()))
    random.Random(f"{seed}/scale-up").shuffle(order)
    quota = pl.col("task").replace_strict(counts, default=0)
    table = pl.DataFrame({"task": tasks, "order": order})
    return table.select(pl.col("order").rank("ordinal").over("task") <= quota).to_series().to_list()
