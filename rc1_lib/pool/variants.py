"""Pose each question with every recipe and measure the results; `choose` picks one when all are known."""

from __future__ import annotations

import ctypes
import multiprocessing
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import orjson
import polars as pl

from rc1_lib.config.run_config import RunConfig
from rc1_lib.difficulty.features import MEASURED, measure
from rc1_lib.pool.dialogue import write_row
from rc1_lib.pool.plan import PlannedRow
from rc1_lib.pool.templates import Pack
from rc1_lib.records import BUCKETS, Bucket, Task
from rc1_lib.rows.frame import ROW_COLUMNS
from rc1_lib.runtime.batches import gc_paused
from rc1_lib.task_specs import TaskSpec, added, register

_CHUNK = 500
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of posing a question: recipe, measured difficulty, and whether the length is within its bounds."""

    recipe: Bucket
    bucket: Bucket
    right_length: bool


PosedRow = list[tuple[Variant, bytes]]
"""The variants of a row (at least one), each with its JSON line."""


@dataclass(frozen=True, slots=True)
class PosedChunk:
    """Several rows, each with all of its variants.

    Attributes:
        rows: the rows in the plan's order.
        measured: the metrics, one line per variant, in the same order.
    """

    rows: list[PosedRow]
    measured: pl.DataFrame


def pose_variants(planned: Sequence[PlannedRow], config: RunConfig, pack: Pack) -> Iterator[PosedChunk]:
    """Yield every variant of each planned row, chunk by chunk in the plan's order."""
    chunks = [planned[start : start + _CHUNK] for start in range(0, len(planned), _CHUNK)]
    if config.pool.workers == 1 or len(chunks) == 1:
        yield from (_pose_chunk(chunk, config, pack) for chunk in chunks)
        return
    with _worker_processes(config.pool.workers) as pool:
        try:
            yield from pool.map(_pose_chunk, chunks, [config] * len(chunks), [pack] * len(chunks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _worker_processes(count: int) -> ProcessPoolExecutor:
    """Start worker processes with this process's registered tasks; they end with it even if it is killed.

    They are spawned, not forked, since the caller may be a thread of a running Prefect engine. They ignore Ctrl-C,
    which a terminal sends to every process: if a worker died of it, this process would wait forever.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_start, initargs=(added(),))


def _start(tasks: Sequence[TaskSpec]) -> None:
    register(*tasks)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _pose_chunk(chunk: Sequence[PlannedRow], config: RunConfig, pack: Pack) -> PosedChunk:
    with gc_paused():
        return _posed(chunk, config, pack)


def _posed(chunk: Sequence[PlannedRow], config: RunConfig, pack: Pack) -> PosedChunk:
    places: list[tuple[int, Bucket]] = []
    lines: list[bytes] = []
    for place, planned in enumerate(chunk):
        finished = planned.question.dialogue is not None
        for recipe in BUCKETS[:1] if finished else BUCKETS:
            row = write_row(planned, recipe, config.pool, pack)
            if row is not None:
                places.append((place, recipe))
                lines.append(orjson.dumps(row) + b"\n")
    frame = pl.read_ndjson(b"".join(lines), schema=pl.Schema({name: ROW_COLUMNS[name] for name in MEASURED}))
    measured = measure(frame)
    bounds = config.gates.length
    right = measured["len_tokens"].is_between(bounds.min_len, bounds.max_len).to_list()
    variants: list[PosedRow] = [[] for _ in chunk]
    for (place, recipe), bucket, right_length, line in zip(
        places, measured["bucket"].to_list(), right, lines, strict=True
    ):
        variants[place].append((Variant(recipe, bucket, right_length), line))
    assert all(variants), "a question was planned although its solution exceeds the turn limit"
    return PosedChunk(variants, measured)


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
