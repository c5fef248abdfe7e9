"""Serve RC1 with one command, `rc1 serve`.

It starts a Prefect server, and has Prefect serve the deployments: each run as a process, one at a time. Ctrl-C stops
all of them.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import yaml
from prefect import Flow, State
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.schedules import Cron
from prefect.states import Crashed

from deployments.access import forget_server, record_server, running_server, serving_alone
from deployments.server import check_port, check_prefect_files, healthy, settings, start_server
from flows.failures import keep_crashed_night
from rc1_lib.errors import RC1Error
from rc1_lib.runtime.libraries import lacking_for_training
from rc1_lib.workspace.artifacts import CODE_ROOT

_LOOK_S = 2.0
"""Seconds between two looks for a run that is due; a person waits for it."""


def serve(workspace: Path, port: int) -> int:
    """Serve a workspace until interrupted, and return the exit code.

    Raises:
        RC1Error: when the workspace is served already, the port is taken, or a file in the current folder sets Prefect.
        ServerFault: when the server does not start.
    """
    if workspace.exists() and not workspace.is_dir():
        raise RC1Error(f"--workspace {workspace}: is a file, expected a folder")
    check_prefect_files(Path.cwd())
    with serving_alone(workspace):
        check_port(port)
        print(f"starting the Prefect server for {workspace} ...", flush=True)
        server = start_server(workspace, port)
        try:
            os.environ.update(settings(workspace, server.url, server.password))
            record_server(workspace, server)
            return work(workspace, server.url)
        finally:
            forget_server(workspace)
            server.stop()


def password_of(workspace: Path) -> str:
    """Return the password of the server that serves the workspace, as in `PREFECT_API_AUTH_STRING`.

    Raises:
        RC1Error: when none serves it.
    """
    server = running_server(workspace)
    if server is None:
        raise RC1Error(f"{workspace}: no server of RC1 serves this workspace; start one with `rc1 serve`")
    return server.password


def work(workspace: Path, url: str) -> int:
    """Register the deployments and run what is due, until interrupted (0) or until the server is gone (1)."""
    import prefect

    from deployments.serve import crash_leftovers, deployments_of

    if lost := crash_leftovers(workspace):
        print(f"{lost} run(s) that an earlier `rc1 serve` left unfinished are now marked as crashed", flush=True)
    found = deployments_of(workspace)
    if lacking_for_training():
        print("rc1/train is not registered, since training needs the extra: pip install 'rc1[train]'", flush=True)
    _print_address(workspace, url)
    try:
        # A schedule that paused would forget the night that was missed meanwhile.
        prefect.serve(*found, limit=1, query_seconds=_LOOK_S, pause_on_shutdown=False)
    except (KeyboardInterrupt, SystemExit):  # Prefect's runner exits at SIGTERM
        return 0
    except Exception:  # a client whose server is gone fails in many ways; with a server it is a fault
        if healthy(url):
            raise
    print("the Prefect server ended", file=sys.stderr)
    return 1


def _print_address(workspace: Path, url: str) -> None:
    programs = Path(sys.executable).parent
    asked = f"{programs / 'rc1'} serve --password --workspace {shlex.quote(str(workspace))}"
    print(
        f"\nRC1 is served at {url}; the web page asks for the password of the next lines\n"
        f"in another terminal:\n"
        f'  export PREFECT_API_URL={url}/api PREFECT_API_AUTH_STRING="$({asked})"\n'
        f"  {programs / 'prefect'} deployment run rc1/preflight --watch\n"
        f"this uses the shipped settings of profile {os.environ.get('RUN_MODE') or 'local'}; "
        "for others, as with --set: "
        "--param 'overrides=[\"pool.n=1200\"]'\n"
        f"Ctrl-C stops server and runs.",
        flush=True,
    )


# The deployments of a workspace, as `prefect.yaml` lists them, for the server at `PREFECT_API_URL`.

LISTED = Path(__file__).parent / "prefect.yaml"
_UNFINISHED = [StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]


def deployments_of(workspace: Path) -> list[RunnerDeployment]:
    """Return the deployments, to be served for the workspace; `train` only if it can run here."""
    found = []
    for one in yaml.safe_load(LISTED.read_text())["deployments"]:
        if one["name"] == "train" and lacking_for_training():
            continue
        flow = Flow.from_source(source=str(CODE_ROOT), entrypoint=one["entrypoint"])
        assert isinstance(flow, Flow)  # it is awaitable only inside an event loop
        made = flow.to_deployment(
            name=one["name"],
            description=one["description"],
            parameters={**one["parameters"], "workspace": str(workspace)},
            schedules=[Cron(each["cron"], timezone=each["timezone"]) for each in one.get("schedules", ())],
        )
        assert isinstance(made, RunnerDeployment)
        found.append(made)
    return found


def crash_leftovers(workspace: Path) -> int:
    """Mark runs in a workspace as crashed that a killed `rc1 serve` left unfinished, and return their number.

    A database of the user's own may hold runs of other workspaces. A nightly is recorded in the history too, which
    Prefect's hooks do only for a run that ends in its own process.
    """
    left_by = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(is_null_=False),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_UNFINISHED)),
    )
    with get_client(sync_client=True) as client:
        found = client.read_flow_runs(flow_run_filter=left_by)
        left = [run for run in found if run.parameters.get("workspace") == str(workspace)]
        for run in left:
            message = "`rc1 serve` ended during this run; run it again, and it continues from what is done"
            crashed: State[Any] = Crashed(message=message)
            keep_crashed_night(run, crashed)  # first, since a run that ended is not looked for again
            client.set_flow_run_state(run.id, crashed, force=True)
    return len(left)
