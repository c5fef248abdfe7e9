"""Checks and their figures in words, for terminals and notebooks; it loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rc1_lib.records import Check


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


def failed_lines(gate: Mapping[str, Any], listed: str) -> list[str]:
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
