"""A control as a Prefect task: its verdict as a named state, its checks in the UI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import State
from prefect.artifacts import create_table_artifact
from prefect.logging import get_run_logger

from rc1_lib.check_words import gate_sentence
from rc1_lib.config.engines import ControlKind
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.control import GATE, run_control
from rc1_lib.gate_report import GateReport
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from tasks.calibrate import state_with_report
from tasks.endings import retried
from tasks.prepared import prepared_for
from tasks.reports import table


@retried(name="control", task_run_name="control: {kind} reward")
def control(run: Run, kind: ControlKind, seeds: Sequence[int]) -> State[Any]:
    """Train a few steps on an uninformative reward, and check that the evaluation finds no gain.

    Returns:
        A state with the verdict as its name and the `GateReport` as its data.
    """
    try:
        found = run_control(prepared_for(run, force=True), kind, seeds, get_run_logger().info)
    except RC1Error as error:
        found = GateReport(GateResult(GATE, error=str(error)), "", {})
    create_table_artifact(
        key=f"rc1-control-{kind}",
        table=table([found.gate]),
        description=f"Control, {kind} reward (profile {run.config.profile}): {gate_sentence(found.gate, advice=False)}",
    )
    return state_with_report(found)
