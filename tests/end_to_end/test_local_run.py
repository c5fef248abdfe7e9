"""A flow that a command runs without a running server: it starts its own, which ends with it."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from rc1_lib.run import Run
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.state import state_of

PROGRAM = """
import sys
from deployments.local_run import run_flow
from rc1_lib.gates import gate_list
gate_list.PREFLIGHT = tuple(spec for spec in gate_list.PREFLIGHT if spec.name in ("training_config", "length", "mix"))
end = run_flow("preflight", workspace=sys.argv[1], overrides=sys.argv[2:], build="never", rounds=[1])
print(end.state_name, end.message)
sys.exit(end.exit_code)
"""


COMMAND = "from rc1_lib.cli import main; main()"


def server_of(process: subprocess.Popen[bytes], log: Path) -> int:
    """The process of the command's own server, after the command reported that it answers."""
    while b"Prefect server: 1/1" not in log.read_bytes():
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    return next(one.pid for one in psutil.Process(process.pid).children() if "uvicorn" in one.cmdline())


@pytest.mark.long
def test_server_killed_during_a_run_ends_the_command_with_a_message(built: Run, tmp_path: Path) -> None:
    root, log = tmp_path / "workspace", tmp_path / "output.txt"
    shutil.copytree(built.workspace.root, root)
    flags = [part for override in built.overrides for part in ("--set", override)]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "round1", "--workspace", str(root), "--build", "never", *flags],
            env={**bare(), "PYTHONPATH": str(PROJECT_ROOT)}, stdout=stream, stderr=stream,
        )  # fmt: skip
    os.kill(server_of(process, log), signal.SIGKILL)
    assert process.wait(800) == 1, log.read_text()
    assert "ended during the run; files are written whole or not at all" in log.read_text()


def bare() -> dict[str, str]:
    """The environment without Prefect settings of other tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}


def test_local_run_starts_its_own_server_and_stores_the_results(built: Run, tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    shutil.copytree(built.workspace.root, root)
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), *built.overrides, "gates.training.min_seeds=9"],
        env={**bare(), "PYTHONPATH": str(PROJECT_ROOT)}, stdout=subprocess.PIPE, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout.split()[0]) == (2, "GatesFailed")
    assert "1 of 3 gates failed: training_config" in run.stdout
    kept = stored_results(state_of(root) / "prefect.db")
    assert kept["states"] == {"GateFailed": 1, "GatePassed": 2} and not kept["unfinished"]
    assert kept["artifacts"] and kept["events"] > 3


def stored_results(database: Path) -> dict[str, Any]:
    """What a later server shows of the run."""
    with closing(sqlite3.connect(database)) as connection:

        def one(query: str) -> int:
            return int(connection.execute(query).fetchone()[0])

        states = "SELECT state_name, COUNT(*) FROM task_run WHERE state_name LIKE 'Gate%' GROUP BY state_name"
        return {
            "states": dict(connection.execute(states).fetchall()),
            "unfinished": one("SELECT COUNT(*) FROM task_run WHERE state_type NOT IN ('COMPLETED', 'FAILED')"),
            "artifacts": one("SELECT COUNT(*) FROM artifact"),
            "events": one("SELECT COUNT(*) FROM events"),
        }
