"""Report that a benchmark could not run on this machine; `make bench` goes on, and lists such benchmarks at its end."""

from __future__ import annotations

NOT_RUN = 77
"""Exit code of a skipped benchmark, as automake uses it for skipped tests; 0 would mean that it was run."""


def not_run(what: str, why: str, how: str) -> int:
    """Print what was not run, why, and how to run it; return the exit code."""
    print(f"NOT RUN: {what}: {why}. To run it: {how}", flush=True)
    return NOT_RUN
