"""One command that serves RC1: `python -m deployments.serve [--workspace DIR] [--port 4200]`.

It brings up the Prefect server, a process work pool, both deployments and a worker, and ends them all on Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from deployments import children
from deployments.server import (
    ServerFault,
    check_port,
    forget_server,
    healthy,
    record_server,
    running_server,
    settings,
    start_server,
)
from rc1_lib.artifacts import PROJECT_ROOT
from rc1_lib.errors import RC1Error

PORT = 4200
POOL = "rc1-local"
WEBHOOK = "RC1_WEBHOOK_SECRET_URL"
"""Holds the address that is told of a run that is not green; `SECRET` hides all of its value wherever RC1 writes."""
_BREATH_S = 2.0
"""Between two looks at the children, and before a worker that died is started again."""


def serve(workspace: Path, port: int = PORT) -> int:
    """Serve a workspace until interrupted; returns the exit code.

    Raises:
        RC1Error: when the workspace is served already, or the port is taken.
        ServerFault: when the server does not come up.
    """
    if workspace.exists() and not workspace.is_dir():
        raise RC1Error(f"--workspace {workspace}: is a file, expected a folder")
    if url := running_server(workspace):
        raise RC1Error(f"{workspace} is served already, at {url}; use that server, or end it first")
    check_port(port)
    webhook = os.environ.pop(WEBHOOK, "")  # before a process is started that has no use for it
    ended = _listen_for_the_end()
    print(f"starting the Prefect server for {workspace} ...", flush=True)
    server = start_server(workspace, port, wanted=lambda: not ended.is_set())
    try:
        record_server(workspace, server.url)
        os.environ.update(settings(workspace, server.url))
        from deployments.crashed_runs import crash_leftovers, watch_heartbeats
        from deployments.notify import tell_when_red
        from deployments.register import register

        register(workspace, POOL)
        watch_heartbeats()
        if tell_when_red(webhook):
            print("a run that does not end green is told of by the webhook", flush=True)
        if lost := crash_leftovers(POOL):
            print(f"{lost} run(s) that an earlier server left unfinished are now marked as crashed", flush=True)
        _tell(server.url)
        return _keep_working(server.process, server.url, ended)
    finally:
        forget_server(workspace)
        children.stop(server.process)


def _listen_for_the_end() -> threading.Event:
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    return ended


def _keep_working(server: subprocess.Popen[bytes], url: str, ended: threading.Event) -> int:
    """Keep a worker alive until we are told to end (0) or the server is gone (1)."""
    worker = _start_worker()
    try:
        while not ended.wait(_BREATH_S):
            if server.poll() is not None and not healthy(url):
                print(f"the Prefect server ended (exit code {server.returncode})", file=sys.stderr)
                return 1
            if worker.poll() is not None:
                print(f"the worker ended (exit code {worker.returncode}); starting another one", file=sys.stderr)
                worker = _start_worker()
        return 0
    finally:
        children.stop(worker)


def _start_worker() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
    return children.start(command, os.environ, None)


def _tell(url: str) -> None:
    print(
        f"\nRC1 is served at {url}\nin another terminal:\n"
        f"  export PREFECT_API_URL={url}/api\n"
        f"  {Path(sys.executable).with_name('prefect')} deployment run rc1/preflight --watch\n"
        "Ctrl-C ends server, worker and runs.",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and serve; 2 for a refusal, 1 for a fault."""
    parser = argparse.ArgumentParser(prog="python -m deployments.serve", description=__doc__)
    parser.add_argument("--workspace", type=Path, default=PROJECT_ROOT, help="what is served; default: the project")
    parser.add_argument("--port", type=int, default=PORT, help="where the server listens, on this machine only")
    chosen = parser.parse_args(arguments)
    try:
        return serve(chosen.workspace.resolve(), chosen.port)
    except RC1Error as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except ServerFault as fault:
        print(fault, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
