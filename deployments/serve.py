"""Serve RC1 with one command, `rc1 serve`.

It starts a Prefect server, and has Prefect serve the deployments: each run as a process, one at a time. Ctrl-C stops
all of them.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from deployments.access import forget_server, record_server, running_server, serving_alone
from deployments.server import check_port, check_prefect_files, healthy, settings, start_server
from rc1_lib.errors import RC1Error
from rc1_lib.runtime.libraries import lacking_for_training

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
    import prefect  # late, as what imports it, since Prefect reads its settings on import

    from deployments.register import crash_leftovers, deployments_of

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
