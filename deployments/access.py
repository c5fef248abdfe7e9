"""How commands find the server of a workspace, and how the server proves that it is the recorded one.

Each server gets a random password when it starts. It lies in a file of mode 0600 in the state folder of this user
(`rc1_lib/workspace/state.py`), next to the port. A server proves that it knows the password before anyone sends it.
"""

from __future__ import annotations

import fcntl
import hmac
import http.client
import json
import os
import secrets
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rc1_lib.errors import RC1Error
from rc1_lib.workspace.artifacts import atomic_write, read_json
from rc1_lib.workspace.state import make_state, state_of

HOST = "127.0.0.1"
PROOF = "/rc1/proof"
"""Path at which a server answers `?NONCE` with `proof_of(password, NONCE)`."""
RECORD = "server.json"
_LOCK = "serve.lock"


@dataclass(frozen=True, slots=True)
class Access:
    """A server that RC1 started on this machine.

    Attributes:
        port: on the loopback interface; a server elsewhere cannot be recorded.
        password: user and password, as in `PREFECT_API_AUTH_STRING`.
    """

    port: int
    password: str

    @property
    def url(self) -> str:
        """The address of the server; its API is below `/api`."""
        return f"http://{HOST}:{self.port}"


def new_password() -> str:
    """Return the user name and a random password for one start of a server."""
    return f"rc1:{secrets.token_urlsafe(32)}"


def proof_of(password: str, nonce: str) -> str:
    """Return what only a server with this password can answer; it does not give the password away."""
    return hmac.new(password.encode(), f"rc1 server {nonce}".encode(), "sha256").hexdigest()


def proves_itself(server: Access) -> bool:
    """Return whether the server at this port answers and knows the password, which is not sent."""
    nonce = secrets.token_hex(16)
    answer = fetch(f"{server.url}{PROOF}?{nonce}")
    return answer is not None and hmac.compare_digest(answer, proof_of(server.password, nonce).encode())


def fetch(address: str) -> bytes | None:
    """Return the first bytes that an address answers with status 200, without a proxy; None if it does not."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address, timeout=5) as reply:
            return bytes(reply.read(1000)) if reply.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None


def running_server(workspace: Path) -> Access | None:
    """Return the server that `rc1 serve` runs for this workspace now, or None.

    Raises:
        ConfigError: when there is no state folder that only this user may use.
    """
    try:
        record = read_json(state_of(workspace) / RECORD)
        server = Access(int(record["port"]), str(record["password"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return server if proves_itself(server) else None


def record_server(workspace: Path, server: Access) -> None:
    """Record the server with which this process serves the workspace."""
    with atomic_write(make_state(workspace) / RECORD, mode=0o600) as stream:
        stream.write(json.dumps({"port": server.port, "password": server.password}).encode())


def forget_server(workspace: Path) -> None:
    """Remove the record that this process wrote."""
    (state_of(workspace) / RECORD).unlink(missing_ok=True)


@contextmanager
def serving_alone(workspace: Path) -> Iterator[None]:
    """Hold the right to serve the workspace, which ends with this process even if it is killed.

    Raises:
        RC1Error: when another process holds it.
    """
    handle = os.open(make_state(workspace) / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            server = running_server(workspace)
            where = f" at {server.url}" if server else ""
            raise RC1Error(f"{workspace} is served already{where}; use that server, or stop it first") from None
        yield
    finally:
        os.close(handle)
