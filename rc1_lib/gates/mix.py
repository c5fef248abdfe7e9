"""Task mix: each task's share is within a tolerance of the configured share."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from rc1_lib.checks import equal, number, within
from rc1_lib.config.thresholds import MixGate
from rc1_lib.gates.spec import GateSpec
from rc1_lib.records import Check, GateResult, Task


def mix_gate(rows: pl.DataFrame, thresholds: MixGate, mix: Mapping[Task, float]) -> GateResult:
    """Check each task's share of the rows, in percent."""
    checks = share_checks("share", rows, thresholds, mix)
    other_tasks = int((~rows["task"].is_in(list(mix))).sum())
    checks.append(equal("rows of other tasks", other_tasks, 0, "drop rows whose task is not in `datasets`"))
    return GateResult("mix", tuple(checks))


def share_checks(name: str, rows: pl.DataFrame, thresholds: MixGate, mix: Mapping[Task, float]) -> list[Check]:
    """Return one check per task: its share of the rows, in percent."""
    checks = []
    for task, share in mix.items():
        # Rounded, so that 28 % does not exceed 28 % by the last bit of a float.
        found = round(100.0 * number((rows["task"] == task).mean()), 9)
        low, high = (round(100.0 * share + side * thresholds.tolerance_pp, 9) for side in (-1, 1))
        advice = f"rebuild with --mix, or add {task} questions: the source may have run out"
        checks.append(within(f"{name}[{task}]", found, low, high, advice))
    return checks


SPEC = GateSpec(
    "mix", "are the tasks in proportion", ("pool",),
    lambda e, _: mix_gate(e.rows("pool"), e.run.config.gates.mix, e.run.config.datasets),
)  # fmt: skip
