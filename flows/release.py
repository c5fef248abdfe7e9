"""The release: the report, the ticket once more, the reproduction package.

Run it with `rc1 release`, or with `prefect deployment run rc1/release`. The report is written of a red run too, and
says so; a package is made only where the ticket holds and the evaluation is green.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.endings import ONE_AT_A_TIME, RELEASED, REPORT_WRITTEN
from flows.failures import leave_failure
from rc1_lib.errors import RC1Error
from rc1_lib.run import Run, open_run
from rc1_lib.workspace_lock import holding
from tasks.endings import REFUSED, outcome
from tasks.release import package
from tasks.release import report as report_task
from tasks.reports import verify


@flow(name="rc1", task_runner=ONE_AT_A_TIME, on_failure=[leave_failure], on_crashed=[leave_failure])
def release(
    profile: str | None = "local",
    config: str | None = None,
    overrides: Sequence[str] = (),
    workspace: str | None = None,
    sign: str | None = None,
    only_report: bool = False,
) -> State[Any]:
    """Write the report of a run, and its reproduction package if it may be released.

    Args:
        profile: `local` or `prod`.
        config: the configuration file; default: the profile's own.
        overrides: settings `a.b=c` that overrule the file: the preflight's own, or the ticket does not fit.
        workspace: where everything is read and written; default: the project's root.
        sign: file of a private key (ed25519, PEM) on the machine that runs this; without it the package is not signed.
        only_report: write the report, and stop there.
    """
    try:
        run = open_run(profile=profile, config=config, overrides=overrides, workspace=workspace)
        with holding(run.workspace, "a release"):
            return _released(run, sign, only_report)
    except RC1Error as refusal:
        return Failed(name=REFUSED, message=str(refusal))


def _released(run: Run, sign: str | None, only_report: bool) -> State[Any]:
    page = outcome(report_task(run, return_state=True))
    if only_report:
        verdict = f"RED: {'; '.join(page.red)}" if page.red else "GREEN"
        return Completed(name=REPORT_WRITTEN, message=f"{page.path}: {verdict}")
    run = replace(run, vouched=outcome(verify(run, return_state=True))["vouched"])
    made = outcome(package(run, (page.path, *page.slides), sign, return_state=True))
    signed = f"signed by key {made.signed_by[:16]}" if made.signed_by else "not signed"
    return Completed(name=RELEASED, message=f"{made.path}, {made.files} files, {signed}, SHA-256 {made.sha256}")
