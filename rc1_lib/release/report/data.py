"""The rows that training reads: how difficult, long and varied they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.plots.page import Chart, bars, draw, histogram
from rc1_lib.records import BUCKETS
from rc1_lib.release.report.gates import gate_checks
from rc1_lib.release.report.html import Cell, Section, Table
from rc1_lib.release.report.sources import Citation, Source, Sources, percent, plain, shown
from rc1_lib.task_specs import task_spec

_POOLS = (("old", "pool"), ("new", "balanced"))
_BINS = 24
_SHOWN = ("distinct-2", "3-gram KL", "roles", "styles")


def data(sources: Sources) -> Section:
    """Return histograms of difficulty and length, and the diversity compared with the reference pack."""
    metrics = sources.read("metrics-of-rows", METRICS.path(sources.run))
    balanced = sources.read("balanced", BALANCED.path(sources.run))
    if metrics is None or balanced is None or not metrics.body or not balanced.body:
        return Section(
            "data", "The data", "There is no measured pool in this workspace, so nothing is known about its rows."
        )
    chosen = {row["id"] for row in balanced.body}
    rows, taken = metrics.body, [row for row in metrics.body if row["id"] in chosen]
    lead = f"{len(rows):,} rows in the pool, {len(taken):,} of them in the balanced pool that training reads."
    charts = (_difficulty(rows, taken), _length(rows, taken))
    title = "Diversity, the KL against template pack v1"
    diversity = gate_checks(sources, title, "diversity", _SHOWN, info=False)
    return Section("data", "The data", lead, charts, (_tasks(metrics, rows, taken), *diversity))


def _difficulty(rows: Sequence[Mapping[str, Any]], taken: Sequence[Mapping[str, Any]]) -> Chart:
    return draw(
        "difficulty", "Difficulty", "Share of rows in each bucket, %",
        lambda axes: bars(axes, BUCKETS, _shares(rows), _shares(taken)), 2.0, _POOLS,
    )  # fmt: skip


def _shares(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the share of rows in each bucket."""
    return [sum(row["bucket"] == name for row in rows) / max(len(rows), 1) for name in BUCKETS]


def _length(rows: Sequence[Mapping[str, Any]], taken: Sequence[Mapping[str, Any]]) -> Chart:
    lengths = [[float(row["len_tokens"]) for row in part] for part in (rows, taken)]
    width = max(max(lengths[0]), 1.0) / _BINS
    counts = (Counter(min(int(length / width), _BINS - 1) for length in part) for part in lengths)
    before, after = ([found[number] / max(found.total(), 1) for number in range(_BINS)] for found in counts)
    return draw(
        "length", "Length", "Tokens of a row: outline the pool, filled the balanced pool, each as shares",
        lambda axes: histogram(axes, width, before, after, "tokens"), 2.0, _POOLS,
    )  # fmt: skip


def _tasks(source: Source, rows: Sequence[Mapping[str, Any]], taken: Sequence[Mapping[str, Any]]) -> Table:
    cells: list[Sequence[Cell]] = []
    for task in sorted({str(row["task"]) for row in rows}):
        own, kept = ([row for row in part if row["task"] == task] for part in (rows, taken))
        shares = [Citation(shown(share, percent), source, f"{task}, {name}")
                  for name, share in zip(BUCKETS, _shares(kept), strict=True)]  # fmt: skip
        counts = [Citation(shown(len(part), plain), source, f"rows of {task}") for part in (own, kept)]
        cells.append((task_spec(task).label, *counts, *shares))
    return Table("Rows by task", ("task", "pool", "balanced", *BUCKETS), cells)
