"""Make checks: a comparison, its outcome, and advice if it fails."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.records import Check

MAX_OFFENDERS = 2000
"""Maximum number of offending rows that a gate lists; counts are exact."""


def at_least(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """Check `value >= threshold`; NaN never passes."""
    return Check(name, value, ">=", threshold, not math.isnan(value) and value >= threshold, advice, interval)


def at_most(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """Check `value <= threshold`; NaN never passes."""
    return Check(name, value, "<=", threshold, not math.isnan(value) and value <= threshold, advice, interval)


def below(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """Check `value < threshold`; NaN never passes."""
    return Check(name, value, "<", threshold, not math.isnan(value) and value < threshold, advice, interval)


def above(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """Check `value > threshold`; NaN never passes."""
    return Check(name, value, ">", threshold, not math.isnan(value) and value > threshold, advice, interval)


def equal(name: str, value: bool | int | str | None, wanted: bool | int | str, advice: str) -> Check:
    """Check that `value` equals `wanted` and has the same type, so that 1 is not True."""
    return Check(name, value, "==", wanted, type(value) is type(wanted) and value == wanted, advice)


def within(name: str, value: float, low: float, high: float, advice: str) -> Check:
    """Check `low <= value <= high`; NaN never passes."""
    return Check(name, value, "within", [low, high], not math.isnan(value) and low <= value <= high, advice)


def info(name: str, value: float | int | str | bool | None) -> Check:
    """Return a figure that is only reported."""
    return Check(name, value, "info", None, True)


def number(value: object) -> float:
    """Return a polars aggregate as a float; NaN, with which no check passes, if there was nothing to aggregate."""
    return float(value) if isinstance(value, int | float) else math.nan


def defined(value: float) -> float | None:
    """Return the value for reports, None if it is NaN."""
    return None if math.isnan(value) else value


def parts(frame: pl.DataFrame, by_task: Iterable[str]) -> list[tuple[str, pl.DataFrame]]:
    """Return the whole frame with the suffix '', then each task's rows with the suffix '[task]'."""
    return [("", frame), *((f"[{task}]", frame.filter(pl.col("task") == task)) for task in by_task)]


def offenders(frame: pl.DataFrame, reason: str) -> tuple[Mapping[str, Any], ...]:
    """Return the rows of `frame` as records with a reason, at most `MAX_OFFENDERS`."""
    return tuple({**row, "reason": reason} for row in frame.head(MAX_OFFENDERS).iter_rows(named=True))
