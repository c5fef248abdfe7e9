"""Deployments and the programs that start them: errors, and processes that end with their parent."""

from __future__ import annotations

import inspect
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from deployments import children, serve
from deployments.register import (
    CALIBRATE_ENTRYPOINT,
    ENTRYPOINT,
    NIGHTLY,
    NIGHTLY_CRON,
    RELEASE_ENTRYPOINT,
    SCALE_UP_ENTRYPOINT,
    TRAIN_ENTRYPOINT,
)
from deployments.server import settings
from flows.calibrate import calibrate
from flows.preflight import preflight
from flows.release import release
from flows.scale_up import scale_up
from flows.train import train
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.state import state_of


def program(body: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a Python program with the project on its path."""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", body, *arguments], stdout=subprocess.PIPE, text=True, env=environment
    )


def ended(pid: int) -> bool:
    """Whether a process ended (a zombie counts as ended)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_yaml_file_and_launcher_register_the_same_deployments() -> None:
    written = yaml.safe_load((PROJECT_ROOT / "deployments/prefect.yaml").read_text())["deployments"]
    by_name = {one["name"]: one for one in written}
    assert set(by_name) == {"preflight", "calibrate", "train", "scale-up", "release", "nightly"}
    assert all(one["work_pool"]["name"] == serve.POOL for one in written)
    others = {
        "calibrate": (CALIBRATE_ENTRYPOINT, calibrate),
        "train": (TRAIN_ENTRYPOINT, train),
        "scale-up": (SCALE_UP_ENTRYPOINT, scale_up),
        "release": (RELEASE_ENTRYPOINT, release),
    }
    entries = {name: others.get(name, (ENTRYPOINT, preflight)) for name in by_name}
    assert {name: one["entrypoint"] for name, one in by_name.items()} == {name: entries[name][0] for name in entries}
    assert by_name["nightly"]["parameters"] == NIGHTLY
    assert by_name["nightly"]["schedules"] == [{"cron": NIGHTLY_CRON, "timezone": "UTC"}]
    for one in written:
        flow = entries[one["name"]][1]
        defaults = {name: found.default for name, found in inspect.signature(flow.fn).parameters.items()}
        assert defaults["profile"] is None, "the worker's RUN_MODE decides"
        flow.validate_parameters({**defaults, **one["parameters"]})


def test_used_port_fails_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert serve.main(["--workspace", str(tmp_path), "--port", str(port)]) == 2
    assert f"port {port}" in capsys.readouterr().err


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove settings that an earlier test's local run left in the environment."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)


def test_settings_keep_prefect_on_this_machine(tmp_path: Path, bare_environment: None) -> None:
    chosen = settings(tmp_path, "http://127.0.0.1:4200")
    assert (chosen["PREFECT_SERVER_ANALYTICS_ENABLED"], chosen["DO_NOT_TRACK"]) == ("false", "1")
    assert chosen["PREFECT_SERVER_UI_V2_ENABLED"] == "false"
    kept_here = ("PREFECT_HOME", "PREFECT_LOCAL_STORAGE_PATH", "PREFECT_SERVER_DATABASE_CONNECTION_URL")
    assert all(str(state_of(tmp_path)) in chosen[name] for name in kept_here)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's kernel ends a child with its parent")
def test_child_ends_when_its_parent_is_killed() -> None:
    body = (
        "import os, sys, time\nfrom deployments import children\n"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "print(children.start(sleeper, os.environ, None).pid, flush=True)\ntime.sleep(600)"
    )
    parent = program(body)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not ended(child)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for _ in range(600):
        if ended(child):
            break
        time.sleep(0.1)
    assert ended(child)


def test_stopping_a_child_ends_its_own_children(tmp_path: Path) -> None:
    body = (
        "import signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "grandchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(sys.argv[1], 'w').write(str(grandchild.pid))\ntime.sleep(600)"
    )
    pid_file = tmp_path / "pid"
    child = children.start([sys.executable, "-c", body, str(pid_file)], os.environ, None)
    while not pid_file.exists() or not pid_file.read_text():
        time.sleep(0.05)
    children.stop(child, patience_s=0.2)
    assert child.poll() is not None
    for _ in range(600):
        if ended(int(pid_file.read_text())):
            break
        time.sleep(0.1)
    assert ended(int(pid_file.read_text()))
