"""The Prefect server of one workspace: its settings, how to start and find it; its files are in `<workspace>/.prefect`.

This module must not import Prefect, which reads its settings from the environment on import; they are made here.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from deployments import children
from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import CODE_ROOT, INSTALLED, PROJECT_ROOT, read_json, write_json
from rc1_lib.workspace.folder import little_room

HOST = "127.0.0.1"
HOME = ".prefect"
RECORD = f"{HOME}/rc1-server.json"
LOG = f"{HOME}/server.log"
START_LIMIT_S = 180.0
WEBHOOK = "RC1_WEBHOOK_SECRET_URL"
"""Environment variable with the address of the webhook; the `SECRET` in its name makes RC1 mask its value."""
LITTLE_ROOM = 100 * 2**20
"""Bytes: more than a new database and its log need."""


class ServerFault(Exception):
    """The server did not start, or ended before its run."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that was started: its address and its process."""

    url: str
    process: subprocess.Popen[bytes]


def settings(workspace: Path, url: str) -> dict[str, str]:
    """Return the environment of all processes of a workspace's server. No call leaves the machine.

    A database in the caller's environment (PostgreSQL, for example) is kept. Logging configuration and profile are set
    explicitly, since Prefect would read them from the workspace, and a logging configuration may call any function.
    """
    home = workspace / HOME
    database = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
    # An installed wheel's packages are on Python's path anyway.
    own = [] if INSTALLED else [str(CODE_ROOT)]
    python_path = [*own, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PREFECT_HOME": str(home),
        "PREFECT_LOCAL_STORAGE_PATH": str(home / "storage"),
        "PREFECT_LOGGING_CONFIG_PATH": str(_prefect() / "logging/logging.yml"),
        "PREFECT_PROFILES_PATH": str(_prefect() / "settings/profiles.toml"),
        database: os.environ.get(database) or _sqlite(home / "prefect.db"),
        "PREFECT_API_URL": api_of(url),
        "PREFECT_LOGGING_EXTRA_LOGGERS": "rc1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # The new UI calls an outside host from the browser.
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
        # A killed run is detected by its missing heartbeat; leases in memory would be lost with a server restart.
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        "PYTHONPATH": os.pathsep.join(python_path),
    }


def _sqlite(path: Path) -> str:
    """Return the address of a database; a name with `?` or `#` must be quoted, which SQLite supports only in a URI."""
    name = str(path)
    return f"sqlite+aiosqlite:///{name}" if name == quote(name) else f"sqlite+aiosqlite:///file:{quote(name)}?uri=true"


def start_server(
    workspace: Path,
    port: int,
    wanted: Callable[[], bool] = lambda: True,
    meanwhile: Callable[[str], None] = lambda url: None,
) -> Server:
    """Start the workspace's server and wait until it answers.

    Args:
        workspace: the workspace with the database.
        port: its port, open to this machine only.
        wanted: called while waiting; False gives up.
        meanwhile: called once with the server's address, while it starts.

    Raises:
        ServerFault: when it ends, or does not answer in time; its log says why.
    """
    url = f"http://{HOST}:{port}"
    log = workspace / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    # uvicorn itself, since `prefect server start` takes seconds longer. It puts --app-dir first on the path, by default
    # the current folder; here it is the checkout's root or, for a wheel, a folder without modules.
    application = [
        "--app-dir",
        str(PROJECT_ROOT),
        "--factory",
        "deployments.server_app:create_app",
    ]
    address = ["--host", HOST, "--port", str(port), "--timeout-graceful-shutdown", "5", "--log-level", "warning"]
    listening = {"PREFECT_SERVER_API_HOST": HOST, "PREFECT_SERVER_API_PORT": str(port), "PREFECT__SERVER_FINAL": "1"}
    environment = {**os.environ, **settings(workspace, url), **listening}
    with log.open("ab") as output:
        # -P: files in the current folder must not shadow its modules.
        process = children.start([sys.executable, "-P", "-m", "uvicorn", *application, *address], environment, output)
    server = Server(url, process)
    try:
        meanwhile(url)
        _wait(server, log, wanted)
    except BaseException:
        children.stop(process, 2.0)
        raise
    return server


def _prefect() -> Path:
    """Return the folder of the installed Prefect."""
    found = find_spec("prefect")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


def _wait(server: Server, log: Path, wanted: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not healthy(server.url):
        if server.process.poll() is not None:
            ended = f"the Prefect server ended at once (exit code {server.process.returncode}); see {log}"
            raise ServerFault(ended + little_room(log.parent, LITTLE_ROOM))
        if not wanted():
            raise ServerFault("the start of the Prefect server was interrupted")
        if time.monotonic() > deadline:
            raise ServerFault(f"the Prefect server did not answer within {START_LIMIT_S:.0f} s; see {log}")
        time.sleep(0.05)


def healthy(url: str) -> bool:
    """Return whether a Prefect server answers at `url`."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{url}/api/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def running_server(workspace: Path) -> str | None:
    """Return the address of the server that `rc1 serve` runs for this workspace now, or None."""
    try:
        record = read_json(workspace / RECORD)
        url, pid = str(record["url"]), int(record["pid"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return url if children.alive(pid) and healthy(url) else None


def record_server(workspace: Path, url: str) -> None:
    """Record the address at which this process serves the workspace."""
    write_json(workspace / RECORD, {"url": url, "pid": os.getpid()})


def forget_server(workspace: Path) -> None:
    """Remove the record that this process wrote."""
    (workspace / RECORD).unlink(missing_ok=True)


def free_port() -> int:
    """Return a port that is free at the moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def check_port(port: int) -> None:
    """Check that a port is free.

    Raises:
        RC1Error: when it is not.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise RC1Error(
                f"port {port} on {HOST} cannot be used ({error.strerror}); name another one with --port"
            ) from None


def api_of(url: str) -> str:
    """Return the API's address of a server."""
    return f"{url}/api"


def joined_server(address: str) -> str:
    """Return the address of a running server, given by its own address or its API's.

    Raises:
        RC1Error: when no Prefect server answers there.
    """
    url = address.rstrip("/").removesuffix("/api")
    if not url.startswith(("http://", "https://")):
        raise RC1Error(f"--server {address}: is not an address; expected one such as http://HOST:4200/api")
    if not healthy(url):
        raise RC1Error(
            f"--server {address}: no Prefect server answers at {api_of(url)}/health; start it, or correct the address"
        )
    return url
