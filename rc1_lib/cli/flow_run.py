"""A flow run from the command line: started with the session's settings, told of at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

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
    meanwhile: Callable[[], None] = lambda: None,
    **parameters: Any,
) -> FlowOutcome:
    """Run a flow with the configuration and workspace of this session.

    Args:
        session: of this command.
        run: what it opened.
        name: of the flow.
        verbose: show Prefect's own log.
        meanwhile: called once while a private server starts.
        parameters: the flow's own, beside configuration and workspace.
    """
    from deployments.local_run import run_flow

    session.started = True
    with stages():
        return run_flow(
            name,
            verbose=verbose,
            meanwhile=meanwhile,
            profile=run.config.profile,
            config=str(run.config_path),
            overrides=list(run.overrides),
            workspace=str(run.workspace.root),
            **parameters,
        )


def tell_end(session: Session, outcome: FlowOutcome, document: dict[str, Any], *notes: str, following: str = "") -> int:
    """Pack what a failure leaves behind, say so, and print the document; returns the exit code.

    Args:
        session: of this command.
        outcome: of the flow run.
        document: what `--json` prints beside the outcome.
        notes: lines for a run that ended red, before the package's.
        following: the last line: what to do next; a fault has none.
    """
    package = str(failure_package(session)) if outcome.exit_code else None
    if package:
        session.show(*notes, f"failure package: {package}")
    if following and outcome.exit_code != 1:
        session.show(following)
    session.document(
        {
            "exit_code": outcome.exit_code,
            "state": outcome.state_name,
            "message": outcome.message,
            "flow_run_url": outcome.flow_run_url,
            **document,
            "failpack": package,
        }
    )
    return int(outcome.exit_code)
