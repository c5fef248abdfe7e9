"""The release: the report, its preconditions, one archive, and the verification of the archive as by its recipient.

Run it with `prefect deployment run rc1/release`, or without Prefect with `rc1 release`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import State, flow
from prefect.states import Completed, Failed

from flows.failures import leave_failure
from flows.run_names import named
from rc1_lib.errors import RC1Error
from rc1_lib.release.package import read_key
from rc1_lib.release.report import check_passed
from rc1_lib.run import Run, open_recorded_run
from tasks.endings import ONE_AT_A_TIME, REFUSED, RELEASED, outcome
from tasks.release import package, ready, release_card, report_page, verified


@flow(
    name="rc1",
    flow_run_name=named("release"),
    task_runner=ONE_AT_A_TIME,
    on_failure=[leave_failure],
    on_crashed=[leave_failure],
)
def release(
    profile: str | None = None,
    config: str | None = None,
    overrides: Sequence[str] = (),
    workspace: str | None = None,
    sign: str | None = None,
) -> State[Any]:
    """Write the report of the run, and pack it if its ticket is valid and its evaluation passed.

    Args:
        profile: `local` or `prod`; default: `RUN_MODE`, else that of the file.
        config: the configuration file; default: the settings that the workspace has recorded, else the profile's own.
        overrides: settings `a.b=c` that override the file: those of the preflight that issued the ticket.
        workspace: where everything is read and written; default: the current folder, if it is a workspace.
        sign: the file of a private key (ed25519, PEM) on the worker's machine, never the key itself; None: not signed.
    """
    try:
        run = open_recorded_run(profile, config, overrides, workspace)
        return _release(run, None if sign is None else Path(sign))
    except RC1Error as refusal:
        return Failed(name=REFUSED, message=str(refusal))


def _release(run: Run, sign: Path | None) -> State[Any]:
    if sign is not None:
        read_key(sign)  # before anything is written
    page = outcome(report_page(run, return_state=True))
    holding = outcome(ready(run, return_state=True))
    check_passed(run, page)
    packed = outcome(package(holding, page, sign, return_state=True))
    sentence = outcome(verified(run, packed, sign, return_state=True))
    release_card(page, packed, sentence)
    return Completed(name=RELEASED, message=sentence)
