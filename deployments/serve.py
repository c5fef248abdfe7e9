"""Serve RC1 with one command: `python -m deployments.serve [--workspace DIR] [--port 4200 | --server ADDRESS]`.

It starts a Prefect server, or joins a running one, and then a process work pool, the deployments and a worker. Ctrl-C
stops what it started.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from deployments import children
from deployments.access import forget_server, record_server, running_server, serving_alone
from deployments.server import (
    WEBHOOK,
    Server,
    ServerFault,
    check_port,
    check_prefect_files,
    healthy,
    joined_server,
    settings,
    start_server,
)
from rc1_lib.errors import RC1Error
from rc1_lib.runtime.libraries import lacking_for_training
from rc1_lib.workspace.artifacts import default_root

PORT = 4200
POOL = "rc1-local"
_BREATH_S = 2.0
"""Seconds between two checks of the children, and before a worker that died is started again."""


def serve(workspace: Path, port: int = PORT, joined: str = "") -> int:
    """Serve a workspace until interrupted, and return the exit code.

    Args:
        workspace: the workspace.
        port: the port of the server that is started.
        joined: the address of a running server to join; empty: start a server.

    Raises:
        RC1Error: when the workspace is served already, the port is taken, a file in the current folder sets Prefect,
            or the server to join does not answer or has other deployments with these names.
        ServerFault: when the server does not start.
    """
    if workspace.exists() and not workspace.is_dir():
        raise RC1Error(f"--workspace {workspace}: is a file, expected a folder")
    check_prefect_files(Path.cwd())
    webhook = os.environ.pop(WEBHOOK, "")  # child processes must not inherit it
    with serving_alone(workspace), _asked_to_end() as ended, _server(workspace, port, joined, ended) as (url, own):
        os.environ.update(settings(workspace, url, own.password if own else ""))
        _set_up(workspace, webhook, alone=own is not None)
        if own is None:
            # Not recorded: RC1's own commands talk to no server that cannot prove that it is the recorded one.
            _print_address(workspace, url, own=False)
            return _keep_working(None, url, ended)
        record_server(workspace, own)
        try:
            _print_address(workspace, url, own=True)
            return _keep_working(own, url, ended)
        finally:
            forget_server(workspace)


def password_of(workspace: Path) -> str:
    """Return the password of the server that serves the workspace, as in `PREFECT_API_AUTH_STRING`.

    Raises:
        RC1Error: when none serves it.
    """
    server = running_server(workspace)
    if server is None:
        raise RC1Error(f"{workspace}: no server of RC1 serves this workspace; start one with `rc1 serve`")
    return server.password


@contextmanager
def _server(workspace: Path, port: int, joined: str, ended: threading.Event) -> Iterator[tuple[str, Server | None]]:
    """Yield the server's address, and the server if it was started here, which ends with the block."""
    if joined:
        yield joined_server(joined), None
        return
    check_port(port)
    print(f"starting the Prefect server for {workspace} ...", flush=True)
    server = start_server(workspace, port, wanted=lambda: not ended.is_set())
    try:
        yield server.url, server
    finally:
        children.stop(server.process)


def _set_up(workspace: Path, webhook: str, *, alone: bool) -> None:
    """Register pool, deployments and automations with the server.

    Args:
        workspace: the workspace to serve.
        webhook: address of the webhook, or empty.
        alone: whether only RC1 uses this server, so that unfinished runs on it were left by an earlier `rc1 serve`.
    """
    from deployments.crashed_runs import crash_leftovers, watch_heartbeats
    from deployments.notify import notify_on_failure
    from deployments.register import check_served_here, create_pool, join_pool, register

    if alone:
        create_pool(POOL)
    else:
        check_served_here(workspace)
        join_pool(POOL)
    register(workspace, POOL)
    if lacking_for_training():
        print("rc1/train is not registered, since training needs the extra: pip install 'rc1[train]'", flush=True)
    watch_heartbeats()
    if notify_on_failure(webhook):
        print("the webhook reports every run that fails", flush=True)
    if alone and (lost := crash_leftovers(POOL)):
        print(f"{lost} run(s) that an earlier server left unfinished are now marked as crashed", flush=True)


@contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set inside the block."""
    ended = threading.Event()
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _keep_working(own: Server | None, url: str, ended: threading.Event) -> int:
    """Keep a worker alive until asked to end (0) or until our own server is gone (1); a joined one may come back."""
    worker = _start_worker()
    try:
        while not ended.wait(_BREATH_S):
            if own is not None and own.process.poll() is not None and not healthy(url):
                print(f"the Prefect server ended (exit code {own.process.returncode})", file=sys.stderr)
                return 1
            if worker.poll() is not None:
                print(f"the worker ended (exit code {worker.returncode}); starting another one", file=sys.stderr)
                worker = _start_worker()
        return 0
    finally:
        children.stop(worker)


def _start_worker() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "prefect", "worker", "start", "--pool", POOL, "--type", "process"]
    return children.start(command, os.environ, None)


def _print_address(workspace: Path, url: str, *, own: bool) -> None:
    programs = Path(sys.executable).parent
    asked = f"{programs / 'rc1'} serve --password --workspace {shlex.quote(str(workspace))}"
    password = f' PREFECT_API_AUTH_STRING="$({asked})"' if own else ""
    print(
        f"\nRC1 is served at {url}{'; the web page asks for the password of the next lines' if own else ''}\n"
        f"in another terminal:\n"
        f"  export PREFECT_API_URL={url}/api{password}\n"
        f"  {programs / 'prefect'} deployment run rc1/preflight --watch\n"
        f"this uses the shipped settings of profile {os.environ.get('RUN_MODE') or 'local'}; "
        "for others, as with --set: "
        "--param 'overrides=[\"pool.n=1200\"]'\n"
        f"Ctrl-C stops {'server, ' if own else ''}worker and runs.",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and serve; return 2 for a user error, 1 for a fault."""
    parser = argparse.ArgumentParser(prog="python -m deployments.serve", description=__doc__)
    parser.add_argument("--workspace", type=Path, help="the workspace; default: the current folder, if it is one")
    parser.add_argument("--port", type=int, default=PORT, help="port of the server, open to this machine only")
    parser.add_argument("--server", default="", help="join a running server with this API address")
    chosen = parser.parse_args(arguments)
    try:
        return serve((chosen.workspace or default_root()).resolve(), chosen.port, chosen.server)
    except RC1Error as refusal:
        print(refusal, file=sys.stderr)
        return 2
    except ServerFault as fault:
        print(fault, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
