"""Nothing in a workspace, or next to it, decides with whom RC1 talks; a server proves itself before it is believed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deployments import serve
from deployments.access import (
    Access,
    forget_server,
    new_password,
    proof_of,
    record_server,
    running_server,
    serving_alone,
)
from deployments.local_run import run_flow
from deployments.server import settings
from rc1_lib.cli import main
from rc1_lib.errors import ConfigError, RC1Error
from rc1_lib.masking import secrets
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.state import make_state, state_of

PASSWORD = "rc1:a-password-of-this-test"


@contextmanager
def listener(answer: Any) -> Iterator[tuple[int, list[str]]]:
    """A server whose body is `answer(path)`; yields its port and all that it is sent."""
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(f"{self.path} {self.headers}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer(self.path).encode())

        def log_message(self, *_: Any) -> None:
            """No log: the test reads `received`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, received
        server.shutdown()


def proving(path: str) -> str:
    """What a server that knows `PASSWORD` answers."""
    return proof_of(PASSWORD, path.partition("?")[2])


def test_recorded_server_that_proves_itself_is_found(tmp_path: Path) -> None:
    with listener(proving) as (port, received):
        record_server(tmp_path, Access(port, PASSWORD))
        assert running_server(tmp_path) == Access(port, PASSWORD)
        forget_server(tmp_path)
        assert running_server(tmp_path) is None
    assert received and not [one for one in received if PASSWORD.partition(":")[2] in one]


@pytest.mark.parametrize("answer", [lambda path: path, lambda path: proof_of("rc1:other", path)])
def test_server_that_cannot_prove_itself_is_not_believed_and_gets_no_password(tmp_path: Path, answer: Any) -> None:
    with listener(answer) as (port, received):
        record_server(tmp_path, Access(port, PASSWORD))
        assert running_server(tmp_path) is None
    assert received and not [one for one in received if "Authorization" in one or "a-password" in one]


def test_program_that_speaks_another_protocol_is_no_server(tmp_path: Path) -> None:
    def greet() -> None:
        connection, _ = other.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")

    with socket.create_server(("127.0.0.1", 0)) as other:
        threading.Thread(target=greet, daemon=True).start()
        record_server(tmp_path, Access(other.getsockname()[1], PASSWORD))
        assert running_server(tmp_path) is None


@pytest.mark.parametrize("name", [".prefect/rc1-server.json", "server.json"])
def test_no_file_of_a_workspace_names_a_server(tmp_path: Path, name: str) -> None:
    with listener(proving) as (port, received):
        record = {"port": port, "password": PASSWORD, "url": f"http://127.0.0.1:{port}", "pid": os.getpid()}
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(record))
        assert running_server(tmp_path) is None
    assert received == []


def test_password_is_random_in_a_file_of_this_user_only_and_masked_everywhere(tmp_path: Path) -> None:
    assert new_password() != new_password() and len(new_password()) > 40
    record_server(tmp_path, Access(9, PASSWORD))
    home = state_of(tmp_path)
    assert {path.stat().st_mode & 0o777 for path in (home.parent, home)} == {0o700}
    assert (home / "server.json").stat().st_mode & 0o777 == 0o600
    assert PASSWORD in secrets({"PREFECT_API_AUTH_STRING": PASSWORD})


@pytest.mark.parametrize("kind", ["readable by others", "link"])
def test_state_folder_that_others_may_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    root = tmp_path / "rc1"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        root.symlink_to(tmp_path / "elsewhere")
    else:
        root.mkdir()
        root.chmod(0o750)
    for use in (state_of, make_state, running_server):
        with pytest.raises(ConfigError, match=r"rc1: is not a folder that only you may use .*XDG_STATE_HOME"):
            use(tmp_path)


def test_second_server_of_a_workspace_is_refused_at_once(tmp_path: Path) -> None:
    with listener(proving) as (port, _), serving_alone(tmp_path):
        with pytest.raises(RC1Error, match="is served already; "):  # before its server has started
            serve.serve(tmp_path, 9)
        record_server(tmp_path, Access(port, PASSWORD))
        with pytest.raises(RC1Error, match=f"is served already at http://127.0.0.1:{port}"):
            serve.serve(tmp_path, 9)
        assert running_server(tmp_path) is not None, "the second one did not unlist the first"
    with serving_alone(tmp_path):
        """The right ended with its holder."""


SETTINGS_OF_PREFECT = (
    ("prefect.toml", "[api]\nurl = 'http://127.0.0.1:9/api'\n"),
    ("pyproject.toml", "[tool.prefect.api]\nurl = 'http://127.0.0.1:9/api'\n"),
    (".env", "A=1\rexport  'prefect_api_url' = http://127.0.0.1:9/api\n"),
)


@pytest.mark.parametrize(("name", "text"), SETTINGS_OF_PREFECT)
def test_settings_of_prefect_in_the_current_folder_are_refused_before_a_server_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for start in (lambda: run_flow("preflight", workspace=str(tmp_path)), lambda: serve.serve(tmp_path, 9)):
        with pytest.raises(ConfigError, match=rf"{name}: has .*expected no setting of Prefect in a file"):
            start()
    assert not state_of(tmp_path).exists()


def test_serving_imports_prefect_only_after_its_settings_are_checked_and_made() -> None:
    asked = "import sys, deployments.serve; print('prefect' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], cwd=PROJECT_ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_password_is_printed_for_prefects_commands_and_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", PASSWORD)  # already exported: elsewhere it would be masked
    with listener(proving) as (port, _):
        record_server(tmp_path, Access(port, PASSWORD))
        with pytest.raises(SystemExit) as ended:
            main(["serve", "--password", "--workspace", str(tmp_path)])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{PASSWORD}\n")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"a-password" in path.read_bytes()]
    with pytest.raises(RC1Error, match=r"no server of RC1 serves this workspace; start one with `rc1 serve`"):
        serve.password_of(tmp_path)


@pytest.mark.parametrize("before", [None, "intern.example, 10.0.0.1"])
def test_proxies_are_passed_by_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if before is not None:
        monkeypatch.setenv("NO_PROXY", before)
    chosen = settings(tmp_path, "http://127.0.0.1:4200")
    assert chosen["no_proxy"] == chosen["NO_PROXY"]
    given = [name.strip() for name in (before or "").split(",") if name.strip()]
    assert set(chosen["no_proxy"].split(",")) == {*given, "127.0.0.1", "localhost"}
