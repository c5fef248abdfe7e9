"""The shadow set: of the agreed size, stratified, and without repetition."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from rc1_lib.checks import equal, info, number
from rc1_lib.numbers.apportion import apportion
from rc1_lib.records import GateResult, Task


def shadow_gate(rows: pl.DataFrame, n: int, strata: Mapping[Task, float]) -> GateResult:
    """Judge the shadow rows: `n` of them, no source question twice, and per task exactly the stratified count.

    Args:
        rows: the shadow set.
        n: rows agreed on.
        strata: shares of the tasks, or nothing when the draw was not stratified.
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
