"""The shadow set has the agreed size, is stratified, and repeats no question."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from rc1_lib.checks import equal, info, number
from rc1_lib.numbers.apportion import apportion
from rc1_lib.records import GateResult, Task


def shadow_gate(rows: pl.DataFrame, n: int, strata: Mapping[Task, float]) -> GateResult:
    """Check the shadow rows: `n` of them, no source question twice, and exactly the stratified count per task.

    Args:
        rows: the shadow set.
        n: the agreed number of rows.
        strata: shares of the tasks; empty if the draw was not stratified.
    """
    again = "materialise it again: rc1 shadow-run --materialize"
    questions = rows.select("source", "source_id").n_unique()
    checks = [
        equal("rows", rows.height, n, again),
        equal("questions standing twice", rows.height - questions, 0, again),
        equal("rows of another split", int((rows["split"] != "shadow").sum()), 0, again),
    ]
    wanted = apportion(n, strata) if strata else {}
    checks += [
        equal(f"rows[{task}]", int((rows["task"] == task).sum()), count, again) for task, count in wanted.items()
    ]
    checks.append(info("needs clarification, share", number(rows["needs_clarification"].mean())))
    return GateResult("shadow_set", tuple(checks))
