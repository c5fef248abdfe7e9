"""How a benchmark says that this machine lacks what it measures with: `make bench` goes on, and lists it at its end."""

from __future__ import annotations

NOT_RUN = 77
"""Its exit code then, as automake's tests have it for those that are skipped: 0 would say that it was run."""


def not_run(what: str, why: str, how: str) -> int:
    """Say what was not run, why, and how it can be; the exit code."""
    print(f"NOT RUN: {what}: {why}. To run it: {how}", flush=True)
    return NOT_RUN
