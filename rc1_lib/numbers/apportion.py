"""Integers in given shares, by largest remainders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Name = TypeVar("Name", bound=str)


def apportion(total: int, shares: Mapping[Name, float]) -> dict[Name, int]:
    """Integers that sum to `total` in the given shares (largest remainders), by task, bucket or any other name."""
    exact = {name: total * share for name, share in shares.items()}
    counts = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (counts[name] - exact[name], name))
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts
