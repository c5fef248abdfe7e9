"""A flow run from the command line: started with the session's settings, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rc1_lib.cli.ending import Ending, show_ending
from rc1_lib.cli.failures import failure_package
from rc1_lib.cli.session import Session
from rc1_lib.cli.stages import stages

if TYPE_CHECKING:
    from deployments.local_run import FlowName, FlowOutcome
    from rc1_lib.run import Run


def run_flow_of(
    session: Session,
    run: Run,
    name: FlowName,
    *,
    verbose: bool,
    **parameters: Any,
) -> FlowOutcome:
    """Run a flow with the configuration and workspace of this session.

    Args:
        session: of this command.
        run: what it opened.
        name: of the flow.
        verbose: show Prefect's own log.
        parameters: the flow's own, besides configuration and workspace.
    """
    from deployments.local_run import run_flow

    session.started = True
    with stages():
        return run_flow(
            name,
            verbose=verbose,
            profile=run.config.profile,
            config=str(run.config_path),
            overrides=list(run.overrides),
            workspace=str(run.workspace.root),
            **parameters,
        )


def tell_end(session: Session, outcome: FlowOutcome, document: dict[str, Any], ending: Ending, *notes: str) -> int:
    """Pack what a failure leaves, say so, and print the document and the last lines; returns the exit code.

    Args:
        session: of this command.
        outcome: of the flow run.
        document: what `--json` prints next to the outcome.
        ending: the last lines, unless the run ended in a fault.
        notes: lines for a run that failed, before the package's.
    """
    package = failure_package(session) if outcome.exit_code else None
    if package:
        session.show(*notes, f"failure package: {package}")
    fault = outcome.exit_code == 1
    show_ending(session, Ending("fault", outcome.message, report=package) if fault else ending)
    session.document(
        {
            "exit_code": outcome.exit_code,
            "state": outcome.state_name,
            "message": outcome.message,
            "flow_run_url": outcome.flow_run_url,
            **document,
            "failpack": str(package) if package else None,
        }
    )
    return int(outcome.exit_code)
