"""Run a flow from the command line: print its outline, run it, read its reports, and end the command."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rc1_lib.cli.endings import Ending, end
from rc1_lib.cli.session import Session, stages
from rc1_lib.cli.streams import visible
from rc1_lib.errors import RC1Error

if TYPE_CHECKING:
    from deployments.local_run import FlowName, FlowOutcome
    from rc1_lib.run import Run

Stage = tuple[str, str, float | None]
"""A part of a long command: its name, as in the reports; what it does; its share of the command's time, measured at
the shipped size, or None if it takes hardly any."""
_BEFORE_ROUNDS: tuple[Stage, ...] = (
    ("server", "a private Prefect server, unless one serves here", 0.1),
    ("data", "shadow set, pool, its difficulty, the balanced pool", 0.4),
    ("calibration", "does the reward predict success, can it be cheated", 0.4),
)
_ROUNDS: dict[int, Stage] = {
    1: ("round 1", "every gate, with advice where one fails", 0.05),
    2: ("round 2", "the same gates over the same bytes", 0.05),
}


def preflight_outline(run: Run, rounds: Sequence[int], *, ticket: bool) -> list[str]:
    """Return the stages of a preflight, one line each."""
    opens: list[Stage] = [("ticket", "opens training", None)] if ticket else []
    stages = (*_BEFORE_ROUNDS, *(_ROUNDS[number] for number in rounds), *opens)
    title = f"{run.config.pool.n:,} rows, profile {run.config.profile}; what is up to date is kept"
    return _outline(title, stages, {}, shares=len(rounds) == len(_ROUNDS))


def training_outline(run: Run, seeds: Sequence[int], last: Mapping[str, float], *, evaluate: bool) -> list[str]:
    """Return the stages of a training, one line each; `last` has each stage's seconds in the latest training here."""
    config, training = run.config, run.config.training
    asked = f"{training.held_out.prompts} held-out prompts, before and after"
    compares: list[Stage] = [("evaluation", asked, None)] if evaluate else []
    stages: list[Stage] = [
        ("ticket", "does it list every file that is read", None),
        ("warm start", f"{training.warm_start.steps} steps on demonstrations", None),
        ("training", f"{config.steps} steps of {config.batch_size} episodes a seed", None),
        *compares,
    ]
    title = f"seed {', '.join(map(str, seeds))}, profile {config.profile}; what is trained is kept"
    return _outline(title, stages, last)


def _outline(title: str, stages: Sequence[Stage], last: Mapping[str, float], *, shares: bool = False) -> list[str]:
    """Return the title, and each stage with its latest time, or else its usual share if that is known."""
    wide, far = (max(map(len, column)) for column in list(zip(*stages, strict=True))[:2])
    lines = [title]
    for name, what, share in stages:
        usual = f"about {share:.0%}" if shares and share is not None else ""
        took = f"last time {last[name]:.0f} s" if name in last else usual
        lines.append(f"  {name:{wide}}  {what:{far}}  {took}".rstrip())
    return lines


def run_flow_of(session: Session, run: Run, name: FlowName, *, verbose: bool, **parameters: Any) -> FlowOutcome:
    """Run a flow with the configuration and workspace of `run` and the flow's own parameters."""
    from deployments.local_run import run_flow

    with stages():
        return run_flow(name, verbose=verbose, **run.opening, **parameters)


def end_flow(session: Session, outcome: FlowOutcome, document: dict[str, Any], ending: Ending, *notes: str) -> int:
    """Print the last lines and the document, write a failure package if the run failed, and return the exit code.

    A refusal leaves no package: its sentence says everything.

    Args:
        session: the command's session.
        document: the command's part of the JSON document.
        ending: shown unless the run ended with a fault.
        notes: lines printed first if the run did not pass.
    """
    from tasks.endings import GATES_FAILED

    fault = outcome.exit_code == 1
    package = None
    if fault or outcome.state_name == GATES_FAILED:
        try:
            package = session.pack_failure()
        except (OSError, RC1Error) as error:  # a full disk, for example; the verdict comes all the same
            print(f"rc1: the failure package could not be written: {visible(str(error))}", file=sys.stderr)
    if outcome.exit_code:
        session.show(*notes)
    if package:
        session.show(f"failure package: {package}")
    return end(
        session,
        Ending("fault", outcome.message, report=package) if fault else ending,
        {
            "exit_code": outcome.exit_code,
            "state": outcome.state_name,
            "message": outcome.message,
            "flow_run_url": outcome.flow_run_url,
            **document,
            "failpack": str(package) if package else None,
        },
        int(outcome.exit_code),
    )


def stamps(run: Run, *patterns: str) -> dict[str, int]:
    """Return path -> modification time, in ns, of the workspace's files that match, in the order of the patterns."""
    found = [path for pattern in patterns for path in sorted(run.workspace.root.glob(pattern))]
    return {path.relative_to(run.workspace.root).as_posix(): path.stat().st_mtime_ns for path in found}


def written_since(run: Run, before: Mapping[str, int], *patterns: str) -> dict[str, Any]:
    """Return path -> content of the reports written since the stamps `before` were taken."""
    from rc1_lib.workspace.artifacts import read_json

    return {
        relative: read_json(run.workspace.path(relative))
        for relative, stamp in stamps(run, *patterns).items()
        if before.get(relative) != stamp
    }
