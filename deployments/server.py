"""The Prefect server of one workspace: its settings, and how to start it.

Its files are in this user's state folder of the workspace, since a database or a record that somebody sent could have
automations or name another server. This module must not import Prefect, which reads its settings from the environment
on import; they are made here.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from deployments.access import HOST, Access, fetch, new_password, proves_itself
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.runtime.libraries import past_proxies
from rc1_lib.workspace.artifacts import CODE_ROOT, INSTALLED, PROJECT_ROOT
from rc1_lib.workspace.folder import little_room
from rc1_lib.workspace.state import make_state, state_of

LOG = "server.log"
START_LIMIT_S = 180.0
PARENT = "RC1_SERVER_PARENT"
"""Environment variable of a server with the id of the process that started it, with which it ends."""
LITTLE_ROOM = 100 * 2**20
"""Bytes: more than a new database and its log need."""
_IN_DOTENV = re.compile(r"^\s*(?:export\s+)?'?(prefect_\w+)", re.IGNORECASE | re.MULTILINE)


class ServerFault(Exception):
    """The server did not start, or ended before its run."""


@dataclass(frozen=True, slots=True)
class Server(Access):
    """A server that was started here, and its process."""

    process: subprocess.Popen[bytes]

    def stop(self, patience_s: float = 15.0) -> None:
        """Ask the server to end; kill it if it does not end in time."""
        self.process.terminate()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def settings(workspace: Path, url: str, password: str = "") -> dict[str, str]:
    """Return the environment of all processes of a workspace's server. No call leaves the machine.

    A database in the caller's environment (PostgreSQL, for example) is kept. Logging configuration and profile are set
    explicitly, since Prefect would look for them, and a logging configuration may call any function.

    Args:
        password: of a server that RC1 started; empty: the server is the user's, and so is the password.
    """
    home = state_of(workspace)
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
        "PREFECT_API_URL": f"{url}/api",
        **({"PREFECT_API_AUTH_STRING": password} if password else {}),
        **past_proxies(),
        "PREFECT_LOGGING_EXTRA_LOGGERS": "rc1",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # The new UI calls an outside host from the browser.
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
        "PREFECT_RUNNER_SERVER_ENABLE": "false",  # it would listen without a password
        "PYTHONPATH": os.pathsep.join(python_path),
        "PYTHONSAFEPATH": "1",  # files in the current folder must not shadow modules
    }


def _sqlite(path: Path) -> str:
    """Return the address of a database; a name with `?` or `#` must be quoted, which SQLite supports only in a URI."""
    name = str(path)
    return f"sqlite+aiosqlite:///{name}" if name == quote(name) else f"sqlite+aiosqlite:///file:{quote(name)}?uri=true"


def start_server(
    workspace: Path,
    port: int,
    meanwhile: Callable[[Access], None] = lambda server: None,
) -> Server:
    """Start the workspace's server and wait until it answers.

    Args:
        port: its port, open to this machine only.
        meanwhile: called once with the server's address and password, while it starts.

    Raises:
        ConfigError: when there is no state folder that only this user may use.
        ServerFault: when it ends, or does not answer in time; its log says why.
    """
    access = Access(port, new_password())
    log = make_state(workspace) / LOG
    # uvicorn itself, since `prefect server start` takes seconds longer. It puts --app-dir first on the path, by default
    # the current folder; here it is the checkout's root or, for a wheel, a folder without modules.
    application = [
        "--app-dir",
        str(PROJECT_ROOT),
        "--factory",
        "deployments.server_app:create_app",
    ]
    address = ["--host", HOST, "--port", str(port), "--timeout-graceful-shutdown", "5", "--log-level", "warning"]
    own = {
        "PREFECT_SERVER_API_HOST": HOST,
        "PREFECT_SERVER_API_PORT": str(port),
        "PREFECT_SERVER_API_AUTH_STRING": access.password,
        "PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS": f"{access.url},http://localhost:{port}",
        "PREFECT__SERVER_FINAL": "1",
        PARENT: str(os.getpid()),
    }
    environment = {**os.environ, **settings(workspace, access.url, access.password), **own}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "uvicorn", *application, *address],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the run, which then still needs its server
        )
    server = Server(port, access.password, process)
    try:
        meanwhile(access)
        _wait(server, log)
    except BaseException:
        server.stop(2.0)
        raise
    return server


def _prefect() -> Path:
    """Return the folder of the installed Prefect."""
    found = find_spec("prefect")
    assert found is not None and found.origin is not None
    return Path(found.origin).parent


def _wait(server: Server, log: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while not proves_itself(server):  # whatever else may listen on this port gets no password
        if server.process.poll() is not None:
            ended = f"the Prefect server ended at once (exit code {server.process.returncode}); see {log}"
            raise ServerFault(ended + little_room(log.parent, LITTLE_ROOM))
        if time.monotonic() > deadline:
            raise ServerFault(f"the Prefect server did not answer within {START_LIMIT_S:.0f} s; see {log}")
        time.sleep(0.05)


def healthy(url: str) -> bool:
    """Return whether a Prefect server answers at `url`."""
    return fetch(f"{url}/api/health") is not None


def check_prefect_files(folder: Path) -> None:
    """Check that no file in the current folder, which may be somebody's workspace, sets Prefect.

    Prefect reads three of them; its settings name addresses, headers and modules to import.

    Raises:
        ConfigError: when one does.
    """
    for path, key in _keys_of_prefect(folder):
        raise ConfigError(
            f"{path}: has {key}, expected no setting of Prefect in a file: whoever wrote it could decide with whom RC1 "
            f"talks. Remove it, or set it in the environment; or start RC1 in another folder, with --workspace"
        )


def _keys_of_prefect(folder: Path) -> Iterator[tuple[Path, str]]:
    path = folder / "prefect.toml"
    if path.is_file():
        yield path, "settings of Prefect"
    path = folder / "pyproject.toml"
    if path.is_file():
        try:
            found = tomllib.loads(path.read_text(errors="replace"))
        except tomllib.TOMLDecodeError:
            yield path, "no valid TOML"
        else:
            if "prefect" in found.get("tool", {}):
                yield path, "[tool.prefect]"
    path = folder / ".env"
    if path.is_file():
        for key in _IN_DOTENV.findall(path.read_text(encoding="utf-8-sig", errors="replace")):
            yield path, key


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
