"""Makes checks: a comparison, its outcome and the advice if it fails."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from rc1_lib.numbers.uncertainty import CheckInterval
from rc1_lib.records import Check

MAX_OFFENDERS = 2000
"""Most offending rows that a gate lists; a longer list would not be clearer. The counts stay exact."""


def at_least(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """`value >= threshold`; a NaN never passes."""
    return Check(name, value, ">=", threshold, not math.isnan(value) and value >= threshold, advice, interval)


def at_most(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """`value <= threshold`; a NaN never passes."""
    return Check(name, value, "<=", threshold, not math.isnan(value) and value <= threshold, advice, interval)


def below(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """`value < threshold`; a NaN never passes."""
    return Check(name, value, "<", threshold, not math.isnan(value) and value < threshold, advice, interval)


def above(name: str, value: float, threshold: float, advice: str, interval: CheckInterval | None = None) -> Check:
    """`value > threshold`; a NaN never passes."""
    return Check(name, value, ">", threshold, not math.isnan(value) and value > threshold, advice, interval)


def equal(name: str, value: bool | int | str | None, wanted: bool | int | str, advice: str) -> Check:
    """`value == wanted`, and of the same type: 1 is not True."""
    return Check(name, value, "==", wanted, type(value) is type(wanted) and value == wanted, advice)


def within(name: str, value: float, low: float, high: float, advice: str) -> Check:
    """`low <= value <= high`; a NaN never passes."""
    return Check(name, value, "within", [low, high], not math.isnan(value) and low <= value <= high, advice)


def info(name: str, value: float | int | str | bool | None) -> Check:
    """A figure that is only reported."""
    return Check(name, value, "info", None, True)


def number(value: object) -> float:
    """A polars aggregate as a float; NaN if there was nothing to aggregate, so that no check passes on it."""
    return float(value) if isinstance(value, int | float) else math.nan


def defined(value: float) -> float | None:
    """The value for reports: None if it is undefined."""
    return None if math.isnan(value) else value


def parts(frame: pl.DataFrame, by_task: Iterable[str]) -> list[tuple[str, pl.DataFrame]]:
    """The whole frame with the suffix '', then each task's rows with the suffix '[task]'."""
    return [("", frame), *((f"[{task}]", frame.filter(pl.col("task") == task)) for task in by_task)]


def offenders(frame: pl.DataFrame, reason: str) -> tuple[Mapping[str, Any], ...]:
    """The rows of `frame` as records with their reason, at most `MAX_OFFENDERS`."""
    return tuple({**row, "reason": reason} for row in frame.head(MAX_OFFENDERS).iter_rows(named=True))
