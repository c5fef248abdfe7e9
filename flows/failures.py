"""Write a failure package for failed gates and errors, and an error report for errors, of a deployment's run.

A command does the same for runs that it starts; this is for runs that a worker starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import Flow, State
from prefect.client.schemas.objects import FlowRun
from prefect.logging.loggers import flow_run_logger

from rc1_lib.errors import RC1Error
from rc1_lib.failpack import write_error, write_failpack
from rc1_lib.masking import conceal, secrets
from rc1_lib.preflight.nights import Night, NightOutcome
from rc1_lib.run import Run, open_recorded_run, workspace_at
from rc1_lib.training.run_paths import LOG
from rc1_lib.workspace.artifacts import Workspace
from tasks.endings import NOT_PASSED, REFUSED, raised_by


def leave_failure(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """Handle a failed or crashed run; this is a hook of Prefect."""
    if flow_run.deployment_id is None:
        return
    of = _run_of(flow_run.parameters)
    place = of.workspace if isinstance(of, Run) else of
    logger = flow_run_logger(flow_run, flow)
    keep_crashed_night(flow_run, state)
    if state.name not in NOT_PASSED:
        fault = _fault(state)
        logger.error("FATAL: %s", conceal(str(fault) or type(fault).__name__, secrets()))
        logger.error("error report: %s", place.name(write_error(place, fault, place.path(LOG))))
    if state.name != REFUSED:  # its sentence says all
        logger.error("failure package: %s", place.name(write_failpack(of)))


def keep_crashed_night(flow_run: FlowRun, state: State[Any]) -> None:
    """Record a night whose process died in the history; all other nights record themselves."""
    if not (state.is_crashed() and flow_run.parameters.get("recheck")):
        return
    of = _run_of(flow_run.parameters)
    run, place = (of, of.workspace) if isinstance(of, Run) else (None, of)
    night = Night(str(flow_run.id), place, run)
    if flow_run.start_time is not None:
        night.began = flow_run.start_time.timestamp()
    night.ended(NightOutcome.CRASHED, state.message or "the run crashed")
    night.keep()


def _run_of(parameters: Mapping[str, Any]) -> Run | Workspace:
    """Return the run, or only its workspace if the configuration is invalid."""
    named = (parameters.get("profile"), parameters.get("config"), parameters.get("overrides") or ())
    try:
        return open_recorded_run(*named, parameters.get("workspace"))
    except RC1Error:
        return workspace_at(parameters.get("workspace"))


def _fault(state: State[Any]) -> BaseException:
    """Return the exception that ended the run; if its process died, one with the state's message."""
    found = raised_by(state) if state.is_failed() else None
    return RuntimeError(state.message or "the run crashed") if found is None else found
