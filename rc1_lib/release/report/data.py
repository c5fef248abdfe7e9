"""The rows that training reads: how difficult, long and varied they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rc1_lib.difficulty.derived import BALANCED, METRICS
from rc1_lib.plots.page import Chart, bars, draw, histogram
from rc1_lib.records import BUCKETS
from rc1_lib.release.report.html import Cell, Section, Table
from rc1_lib.release.report.sources import Citation, Source, Sources, json_lines, percent, plain, shown
from rc1_lib.task_specs import task_spec

_POOLS = (("old", "pool"), ("new", "balanced"))
_BINS = 24
_SHOWN = ("distinct-2", "3-gram KL", "roles", "styles")


def data(sources: Sources) -> Section:
    """Histograms of difficulty and length, and diversity against the old pack."""
    metrics = sources.read("metrics-of-rows", METRICS.path(sources.run), json_lines)
    balanced = sources.read("balanced", BALANCED.path(sources.run), json_lines)
    if metrics is None or balanced is None or not metrics.body or not balanced.body:
        return Section(
            "data", "The data", "There is no measured pool in this workspace, so nothing is known of its rows."
        )
    chosen = {row["id"] for row in balanced.body}
    rows, taken = metrics.body, [row for row in metrics.body if row["id"] in chosen]
    lead = f"{len(rows):,} rows in the pool, {len(taken):,} of them in the balanced pool that training reads."
    charts = (_difficulty(rows, taken), _length(rows, taken))
    diversity = _diversity(sources.read("round1", sources.run.workspace.path("reports/preflight/round1.json")))
    return Section("data", "The data", lead, charts, (_tasks(metrics, rows, taken), *diversity))


def _difficulty(rows: Sequence[Mapping[str, Any]], taken: Sequence[Mapping[str, Any]]) -> Chart:
    before, after = ([_share(part, "bucket", name) for name in BUCKETS] for part in (rows, taken))
    return draw(
        "difficulty", "Difficulty", "Share of rows in each bucket, %",
        lambda axes: bars(axes, list(BUCKETS), before, after), 2.0, _POOLS,
    )  # fmt: skip


def _length(rows: Sequence[Mapping[str, Any]], taken: Sequence[Mapping[str, Any]]) -> Chart:
    lengths = [[float(row["len_tokens"]) for row in part] for part in (rows, taken)]
    highest = max(max(lengths[0]), 1.0)
    edges = [highest * number / _BINS for number in range(_BINS + 1)]
    before, after = (_counted(part, edges) for part in lengths)
    return draw(
        "length", "Length", "Tokens of a row: outline the pool, filled the balanced pool, each as shares",
        lambda axes: histogram(axes, edges, before, after, "tokens"), 2.0, _POOLS,
    )  # fmt: skip


def _counted(values: Sequence[float], edges: Sequence[float]) -> list[float]:
    counts = [0] * (len(edges) - 1)
    for value in values:
        counts[min(int(value / edges[1]), len(counts) - 1)] += 1
    return [count / max(len(values), 1) for count in counts]


def _share(rows: Sequence[Mapping[str, Any]], key: str, wanted: str) -> float:
    return sum(bool(row[key] == wanted) for row in rows) / max(len(rows), 1)


def _tasks(source: Source, rows: Sequence[Mapping[str, Any]], taken: Sequence[Mapping[str, Any]]) -> Table:
    cells: list[Sequence[Cell]] = []
    for task in sorted({str(row["task"]) for row in rows}):
        own, kept = ([row for row in part if row["task"] == task] for part in (rows, taken))
        shares = [Citation(shown(_share(kept, "bucket", name), percent), source, f"{task}, {name}") for name in BUCKETS]
        counts = [Citation(shown(len(part), plain), source, f"rows of {task}") for part in (own, kept)]
        cells.append((task_spec(task).label, *counts, *shares))
    return Table("Rows by task", ("task", "pool", "balanced", *BUCKETS), cells)


def _diversity(round1: Source | None) -> list[Table]:
    gates = round1.at("gates") if round1 else None
    found = next((gate for gate in gates or [] if gate["name"] == "diversity"), None)
    if round1 is None or found is None:
        return []
    rows: list[Sequence[Cell]] = [
        (
            str(check["name"]), Citation(shown(check["value"], plain), round1, f"gates.diversity: {check['name']}"),
            f"{check['op']} {check['threshold']}", "passed" if check["passed"] else "RED",
        )
        for check in found["checks"]
        if check["op"] != "info" and str(check["name"]).startswith(_SHOWN)
    ]  # fmt: skip
    return [Table("Diversity, the KL against template pack v1", ("measure", "value", "wanted", "verdict"), rows, True)]
