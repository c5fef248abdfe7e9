"""Build a pool."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.evidence import DATA, Evidence
from rc1_lib.extras.notebook.cards import Card, Shown
from rc1_lib.pool.seed import build_due
from rc1_lib.records import BUCKETS
from rc1_lib.run import Run


@dataclass(frozen=True, slots=True, repr=False)
class Pools(Shown):
    """The rows of a run, one dialogue per row, with the columns of `rc1_lib.records.Row`.

    Attributes:
        pool: the seed pool, `pool.n` rows.
        shadow: the shadow set, `shadow.n` rows with questions that are not in the pool.
        balanced: the rows of the pool for training.
        metrics: difficulty of the pool's rows, in the same order: features and `bucket`.
        written: the files written now; the others already matched this configuration.
    """

    pool: pl.DataFrame
    shadow: pl.DataFrame
    balanced: pl.DataFrame
    metrics: pl.DataFrame
    written: tuple[str, ...]

    def card(self) -> Card:
        """How many rows there are, by task and bucket."""
        counts = self.metrics.group_by("task").agg(
            rows=pl.len(), **{bucket: (pl.col("bucket") == bucket).sum() for bucket in BUCKETS}
        )
        done = ", ".join(self.written) or "nothing: all files match this configuration"
        title = f"pool of {self.pool.height} rows, {self.balanced.height} balanced, shadow set of {self.shadow.height}"
        return Card(title, [f"written now: {done}"], [counts.sort("task")])


def build_pool(run: Run, *, rebuild: bool = False) -> Pools:
    """Build shadow set, samples, pool, difficulty metrics and balanced pool, if they do not exist yet.

    `rc1 build-pool`, `difficulty-metrics` and `difficulty-bucketize` in one.

    Args:
        run: from `open_run`; its workspace is written to.
        rebuild: write all of them again, and overwrite files that somebody altered or supplied.

    Raises:
        RC1Error: if a file was not written by RC1 and `rebuild` is False (nothing is written then), or the source has
            too few questions.
    """
    for artifact in DATA:
        artifact.check_ours(run, rebuild)
    written: list[str] = list(build_due(run, rebuild=rebuild))
    for derived, write in ((METRICS, write_metrics), (BALANCED, write_balanced)):
        if derived.to_write(run, rebuild):
            write(run)
            written.append(derived.name)
    evidence = Evidence(run)
    rows = {name: evidence.rows(name) for name in ("pool", "shadow", "balanced")}
    return Pools(**rows, metrics=evidence.metrics(), written=tuple(written))
