"""The difficulty report: counts, quantiles and histograms of the pool and the balanced pool."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from rc1_lib.records import BUCKETS

FEATURES = (
    "len_tokens", "turns", "tool_hops", "entities",
    "ops_numeric", "connector_density", "coref_pronouns", "clue_overlap",
)  # fmt: skip
_BINS = 20
_QUANTILES = {"p10": 0.10, "p50": 0.50, "p90": 0.90}


def difficulty_report(metrics: pl.DataFrame, balanced_ids: Sequence[str] | pl.Series) -> dict[str, Any]:
    """Describe the metrics of the pool and of the rows chosen for the balanced pool.

    Args:
        metrics: one line per row of the pool, columns `METRIC_TYPES`.
        balanced_ids: the `id`s of the balanced pool's rows.

    Returns:
        JSON-ready values: `counts[pool|balanced][all|task][easy|medium|hard|total]`; `features[name][pool|balanced]`
        with p10, p50, p90, lowest, highest and mean, overall, by task and by bucket; `histograms[name]` with `edges`
        (one more than bins; a bin includes its left edge) and the counts of both pools.
    """
    chosen = pl.Series("id", list(balanced_ids), dtype=pl.String)
    pools = {"pool": metrics, "balanced": metrics.filter(pl.col("id").is_in(chosen.implode()))}
    return {
        "counts": {name: _counts(frame) for name, frame in pools.items()},
        "needs_clarification": {name: _share(frame) for name, frame in pools.items()},
        "ambiguity_flags": {name: _flags(frame) for name, frame in pools.items()},
        "features": {feature: {name: _spread(frame, feature) for name, frame in pools.items()} for feature in FEATURES},
        "histograms": {feature: _histogram(pools, feature) for feature in FEATURES},
    }


def _counts(frame: pl.DataFrame) -> dict[str, dict[str, int]]:
    groups = {"all": frame} | {str(task): frame.filter(pl.col("task") == task) for task in _tasks(frame)}
    return {
        name: {bucket: int((part["bucket"] == bucket).sum()) for bucket in BUCKETS} | {"total": part.height}
        for name, part in groups.items()
    }


def _share(frame: pl.DataFrame) -> float | None:
    value = frame["needs_clarification"].mean()
    return float(value) if isinstance(value, int | float) else None


def _flags(frame: pl.DataFrame) -> dict[str, int]:
    named = frame.select(pl.col("ambiguity_flags").explode()).drop_nulls().group_by("ambiguity_flags").len()
    return dict(sorted(named.iter_rows()))


def _spread(frame: pl.DataFrame, feature: str) -> dict[str, dict[str, float | None]]:
    values = pl.col(feature).cast(pl.Float64)
    figures = [values.quantile(share, "linear").alias(name) for name, share in _QUANTILES.items()]
    figures += [values.min().alias("lowest"), values.max().alias("highest"), values.mean().alias("mean")]
    spread: dict[str, dict[str, float | None]] = {"all": frame.select(figures).row(0, named=True)}
    for key in ("task", "bucket"):
        for row in frame.group_by(key).agg(figures).sort(key).iter_rows(named=True):
            spread[str(row.pop(key))] = row
    return spread


def _histogram(pools: dict[str, pl.DataFrame], feature: str) -> dict[str, list[float] | list[int]]:
    """Count both pools in the same bins of equal width, one per value for counts with a small range."""
    everything = pools["pool"][feature].cast(pl.Float64)
    low, high = everything.min(), everything.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return {"edges": [], "pool": [], "balanced": []}
    whole = pools["pool"][feature].dtype.is_integer()
    width = math.ceil((high - low + 1) / _BINS) if whole else (high - low) / _BINS or 1.0
    bins = math.ceil((high - low + 1) / width) if whole else _BINS
    edges = [round(low + width * number, 6) for number in range(bins + 1)]
    counted = {name: _bin(frame[feature], low, width, bins) for name, frame in pools.items()}
    return {"edges": edges, **counted}


def _bin(values: pl.Series, low: float, width: float, bins: int) -> list[int]:
    numbers = ((values.cast(pl.Float64) - low) / width).floor().clip(0, bins - 1).cast(pl.Int64)
    found = dict(pl.DataFrame({"bin": numbers}).group_by("bin").len().iter_rows())
    return [int(found.get(number, 0)) for number in range(bins)]


def _tasks(frame: pl.DataFrame) -> list[str]:
    return sorted(str(task) for task in frame["task"].unique())
