"""Makes checks (a comparison, its outcome and the advice if it fails), and puts them in words."""

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


def figure(value: Any) -> str:
    """A number, a truth value, a list or a mapping in few characters."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return (" to " if all(isinstance(item, int | float) for item in value) else ", ").join(map(figure, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {figure(item)}" for key, item in value.items())
    return "none" if value is None else str(value)


def wanted(check: Mapping[str, Any]) -> str:
    """What a check compares its value with: `>= 64`."""
    sign = "in" if check["op"] == "within" else check["op"]
    return f"{sign} {figure(check['threshold'])}"


def red_lines(gate: Mapping[str, Any], listed: str) -> list[str]:
    """Say of a failed gate what failed, what to do, and where the rows at fault are listed."""
    if gate["status"] not in ("failed", "error"):
        return []
    lines = [f"{gate['name']}: {gate['error']}"] if gate["error"] else []
    for check in gate["checks"]:
        if not check["passed"]:
            lines.append(f"{gate['name']}: {check['name']} is {figure(check['value'])}, wanted {wanted(check)}")
            lines += [f"    {words}"] if (words := Check.from_dict(check).undecided) else []
            lines += [f"    {check['advice']}"] if check["advice"] else []
    if gate["offenders"]:
        lines.append(f"    {gate['offenders']} rows at fault: {listed}")
    return lines
