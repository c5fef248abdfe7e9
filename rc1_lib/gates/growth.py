"""Growth: a larger pool holds every row of the smaller one, byte for byte, and as many rows as were asked for."""

from __future__ import annotations

from rc1_lib.checks import equal
from rc1_lib.records import GateResult


def growth_gate(rows: int, wanted: int, lost: int) -> GateResult:
    """Judge a pool that has grown.

    Args:
        rows: that it holds.
        wanted: rows of its size.
        lost: rows of the smaller pool that are not, byte for byte, among its own.
    """
    return GateResult(
        "growth",
        (
            equal("rows", rows, wanted, "build the pool anew: rc1 build-pool --rebuild"),
            equal(
                "rows of the smaller size that are gone", lost, 0,
                "what the smaller size was judged by is no part of this one; grow from the start: rc1 scale-up "
                "--rebuild",
            ),
        ),
    )  # fmt: skip
