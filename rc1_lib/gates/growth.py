"""Growth: a larger pool has every row of the smaller one, byte for byte, and as many rows as were requested."""

from __future__ import annotations

from rc1_lib.checks import equal
from rc1_lib.records import GateResult


def growth_gate(rows: int, wanted: int, lost: int) -> GateResult:
    """Check a pool that has grown.

    Args:
        rows: its number of rows.
        wanted: the number requested.
        lost: rows of the smaller pool that it does not contain, byte for byte.
    """
    return GateResult(
        "growth",
        (
            equal("rows", rows, wanted, "build the pool again: rc1 build-pool --rebuild"),
            equal(
                "rows of the smaller size that are gone", lost, 0,
                "this size does not contain all rows of the smaller one; grow from the start: rc1 scale-up --rebuild",
            ),
        ),
    )  # fmt: skip
