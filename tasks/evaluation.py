"""The evaluation and the control as Prefect tasks: a verdict as a named state, tables and pictures in the UI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefect import State
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.logging import get_run_logger

from rc1_lib.check_words import gate_sentence
from rc1_lib.config.engines import ControlKind
from rc1_lib.errors import RC1Error
from rc1_lib.evaluation.control import GATE as CONTROL
from rc1_lib.evaluation.control import run_control
from rc1_lib.evaluation.gate import GATE
from rc1_lib.evaluation.policies import evaluate_run
from rc1_lib.evaluation.report import evaluation_markdown
from rc1_lib.gate_report import GateReport
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from rc1_lib.training.ppo_run import check_start
from tasks.calibrate import state_with_report
from tasks.endings import retried
from tasks.prepared import prepared_for
from tasks.reports import picture, table


@retried(name="evaluation", task_run_name=GATE)
def evaluation(run: Run, finished: Mapping[int, str], reference: str) -> State[Any]:
    """Let the trained policies play the held-out prompts, and evaluate them.

    Args:
        run: workspace and configuration.
        finished: seed -> fingerprint of its run's last checkpoint.
        reference: fingerprint of the initial policy of these runs.

    Returns:
        A state with the verdict as its name and the `GateReport` as its data.
    """
    try:
        prepared = prepared_for(run)
        check_start(prepared, reference)
        found = evaluate_run(prepared, finished)
    except RC1Error as error:
        found = GateReport(GateResult(GATE, error=str(error)), "", {})
        _show_checks(run, found.gate)
        return state_with_report(found)
    _show_checks(run, found.gate)
    _show_report(run, found)
    return state_with_report(found)


def _show_checks(run: Run, result: GateResult) -> None:
    create_table_artifact(
        key="rc1-train-gates",
        table=table([result]),
        description=f"Evaluation (profile {run.config.profile}): {gate_sentence(result, advice=False)}",
    )


def _show_report(run: Run, found: GateReport) -> None:
    parts = [evaluation_markdown(found.body), f"report: `{found.report}`"]
    parts += [f"## {title}\n\n{picture(run, file, title)}" for title, file in found.plots.items()]
    create_markdown_artifact(
        key="rc1-ppo-eval",
        markdown="\n\n".join(parts) + "\n",
        description=f"{GATE}: {found.gate.status.value}",
    )


@retried(name="control", task_run_name="control: {kind} reward")
def control(run: Run, kind: ControlKind, seeds: Sequence[int]) -> State[Any]:
    """Train a few steps on an uninformative reward, and check that the evaluation finds no gain.

    Returns:
        A state with the verdict as its name and the `GateReport` as its data.
    """
    try:
        found = run_control(prepared_for(run, force=True), kind, seeds, get_run_logger().info)
    except RC1Error as error:
        found = GateReport(GateResult(CONTROL, error=str(error)), "", {})
    create_table_artifact(
        key=f"rc1-control-{kind}",
        table=table([found.gate]),
        description=f"Control, {kind} reward (profile {run.config.profile}): {gate_sentence(found.gate, advice=False)}",
    )
    return state_with_report(found)
