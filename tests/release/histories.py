"""Made-up nights, in the form in which the nightly writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from rc1_lib.checks import at_least
from rc1_lib.preflight.nights import NIGHTS, KeptNight, parse_nights
from rc1_lib.records import GateResult
from rc1_lib.workspace.artifacts import Workspace

FIRST = datetime(2026, 11, 1, 3, 0, 5, tzinfo=UTC)
Gates = Mapping[str, GateResult | float]
"""Gate -> its verdict, or the value of its only check, whose threshold is at least 1."""


def night(day: int, gates: Gates, **changes: Any) -> dict[str, Any]:
    """A night's line; the night fails if one of its gates fails."""
    results = [
        GateResult(name, (at_least("value", found, 1.0, ""),)) if isinstance(found, float) else found
        for name, found in gates.items()
    ]
    began = FIRST + timedelta(days=day)
    return {
        "id": f"night {day}", "began": began.isoformat(), "ended": began.isoformat(),
        "outcome": "passed" if all(result.status in ("passed", "waived") for result in results) else "failed",
        "verdict": f"of day {day}", "profile": "local", "config_sha256": "c" * 64, "ticket": None,
        "rounds": {"round1": [_gate(result) for result in results]}, "judge": None, **changes,
    }  # fmt: skip


def values(*found: float | None, name: str = "gate", **changes: Any) -> list[dict[str, Any]]:
    """One night per value, with a single gate; None: the gate was not judged."""
    return [night(day, {} if one is None else {name: one}, **changes) for day, one in enumerate(found)]


def _gate(result: GateResult) -> dict[str, Any]:
    checks = [{key: part for key, part in check.to_dict().items() if key != "advice"} for check in result.checks]
    return {"name": result.name, "status": result.status.value, "why": result.error or result.waiver, "checks": checks}


def content(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """The history file of these nights."""
    return b"".join(orjson.dumps(line) + b"\n" for line in lines)


def kept(lines: Sequence[Mapping[str, Any]]) -> list[KeptNight]:
    """These nights, parsed."""
    return parse_nights(content(lines), NIGHTS)


def write(place: Workspace, lines: Sequence[Mapping[str, Any]]) -> None:
    """Write the history of a workspace."""
    place.path(NIGHTS).parent.mkdir(parents=True, exist_ok=True)
    place.path(NIGHTS).write_bytes(content(lines))
