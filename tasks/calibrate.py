"""One Prefect task run per stage of the calibration: its verdict as a named state, its pictures in the UI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import State, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.logging import get_run_logger

from rc1_lib.calibration.judge_baseline import record_baseline
from rc1_lib.calibration.stages import BY_NAME, CLEARED, REPORT, STAGES, Weights, evaluate_here
from rc1_lib.calibration.weights_file import adopt
from rc1_lib.check_words import stages_sentence
from rc1_lib.config.file import departures
from rc1_lib.errors import RC1Error
from rc1_lib.gate_report import GateReport
from rc1_lib.provenance.derived import Build
from rc1_lib.records import GateResult
from rc1_lib.run import Run, published_config
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.artifacts import now, write_json
from tasks.endings import refusable, retried
from tasks.gates import faulted, read_verdict, state_of
from tasks.keys import provide_scorer_key
from tasks.reports import picture, table

STAGE = "calibration"


@retried(name="calibration stage", task_run_name="{name}")
def stage(run: Run, name: str, weights: Weights | None) -> State[Any]:
    """Evaluate one stage. Paid scores are stored, so a restarted stage only pays for the rest.

    Args:
        run: supplies files and configuration.
        name: from `rc1_lib.calibration.stages.STAGES`.
        weights: the candidate, if there is one.

    Returns:
        A state with the verdict as its name and the `GateReport` as its data.
    """
    place = [one.name for one in STAGES].index(name)
    report_progress(STAGE, place, len(STAGES), BY_NAME[name].title)
    provide_scorer_key(run)
    try:
        outcome = evaluate_here(run, BY_NAME[name], weights)
    except RC1Error as error:
        return state_with_report(GateReport(GateResult(name, error=str(error)), "", {}))
    report_progress(STAGE, place + 1, len(STAGES), f"{name} {outcome.gate.status.value}")
    if outcome.report:
        _show(run, outcome)
    return state_with_report(outcome)


def state_with_report(outcome: GateReport) -> State[Any]:
    """Return the verdict of a step that writes a report as a Prefect state, with the whole outcome as its data."""
    state: State[Any] = state_of(outcome.gate)
    state.data = outcome
    return state


def read_report(name: str, state: State[Any]) -> GateReport:
    """Return the outcome of such a step's task; an error that prevented a verdict is its `fault`."""
    found = state.result(raise_on_failure=False)
    if isinstance(found, GateReport):
        return found
    _, fault = read_verdict(found)
    return GateReport(faulted(name, fault), "", {}, fault=fault)


@retried(name="adopt weights")
@refusable
def adopt_weights(run: Run, weights: Weights, report: str) -> str:
    """Write the weights after every stage has passed, and return the file's name."""
    adopt(run, weights, report)
    get_run_logger().info("%s: written, from %s", run.config.weights, report)
    return run.config.weights


@retried(name="judge baseline", task_run_name="judge baseline")
@refusable
def judge_baseline(run: Run, build: Build) -> str | None:
    """Record the fixed set that the judge scores again every night, if there is none yet.

    Args:
        build: `never` records nothing. `always` does not replace one either.

    Returns:
        The time at which the baseline was recorded; None with `never`.
    """
    if build == "never":
        return None
    provide_scorer_key(run)
    body = record_baseline(run)
    report_progress("judge baseline", 1, 1, f"{len(body['dialogues'])} dialogues, recorded {body['recorded']}")
    return str(body["recorded"])


@task(name="calibration report", persist_result=False)
def report_calibration(run: Run, results: list[GateResult], reports: Mapping[str, str]) -> str:
    """Write every stage's verdict, including those not reached, and show the checks in the UI as one table.

    Args:
        results: one verdict per stage.

    Returns:
        The report's path, relative to the workspace.
    """
    body = {
        "pass": all(result.status in CLEARED for result in results),
        "time": now(),
        "profile": run.config.profile,
        "config_sha256": run.config_sha256,
        "thresholds_changed": departures(run.config, published_config()),
        "stages": [
            {
                "gate": {**result.to_dict(), "offenders": len(result.offenders)},
                "report": reports.get(result.name),
            }
            for result in results
        ],
    }
    write_json(run.workspace.path(REPORT), body)
    create_table_artifact(
        key="rc1-calibration-gates",
        table=table(results),
        description=f"Calibration (profile {run.config.profile}): {stages_sentence(results, len(STAGES))}",
    )
    return REPORT


def _show(run: Run, outcome: GateReport) -> None:
    """Show the stage's pictures in one artifact."""
    parts = [f"# {BY_NAME[outcome.gate.name].title}: {outcome.gate.status.value}", f"report: `{outcome.report}`"]
    parts += [f"## {title}\n\n{picture(run, file, title)}" for title, file in outcome.plots.items()]
    create_markdown_artifact(
        key=f"rc1-{outcome.gate.name.replace('_', '-')}",
        markdown="\n\n".join(parts) + "\n",
        description=f"{outcome.gate.name}: {outcome.gate.status.value}",
    )
