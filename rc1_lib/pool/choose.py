"""Choose one variant of each question so that the pool has the intended difficulty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from rc1_lib.pool.variants import Variant
from rc1_lib.records import BUCKETS, Bucket, Task


def choose(tasks: Sequence[Task], variants: Sequence[Sequence[Variant]], intended: Mapping[Bucket, float]) -> list[int]:
    """Return for each row the index of the variant to take.

    Each task's scarcest bucket is filled first, and first with rows that fit no other. Within a row, a variant whose
    recipe aimed at the bucket is preferred to one that landed there by chance, such as a hard recipe that came out
    easy.

    Args:
        variants: at least one variant of each row.
        intended: share of each bucket within a task.
    """
    table = pl.DataFrame(
        [
            (row, task, place, variant.bucket, variant.recipe == variant.bucket, variant.right_length)
            for row, (task, options) in enumerate(zip(tasks, variants, strict=True))
            for place, variant in enumerate(options)
        ],
        schema=["row", "task", "place", "bucket", "as_intended", "right_length"],
        orient="row",
    )
    best = table.sort("row", "right_length", "as_intended", "place", descending=[False, True, True, False])
    picks = dict(best.unique("row", keep="first", maintain_order=True).select("row", "place").iter_rows())
    for task in set(tasks):
        picks.update(_fill(best.filter(pl.col("task") == task), intended))
    return [picks[row] for row in range(len(variants))]


def _fill(options: pl.DataFrame, intended: Mapping[Bucket, float]) -> dict[int, int]:
    """Return {row: place} for one task; `options` must be sorted with a row's best variant first."""
    rows = options["row"].n_unique()
    usable = options.filter(pl.col("right_length")).unique(["row", "bucket"], keep="first", maintain_order=True)
    usable = usable.with_columns(choices=pl.len().over("row"))
    supply = {bucket: int((usable["bucket"] == bucket).sum()) for bucket in BUCKETS}
    scarcest_first = sorted(BUCKETS, key=lambda bucket: supply[bucket] / max(intended[bucket], 1e-9))
    picks: dict[int, int] = {}
    for bucket in scarcest_first:
        free = usable.filter((pl.col("bucket") == bucket) & ~pl.col("row").is_in(list(picks)))
        quota = round(intended[bucket] * rows)
        chosen = free.sort("as_intended", "choices", "row", descending=[True, False, False]).head(quota)
        picks.update(chosen.select("row", "place").iter_rows())
    return picks
