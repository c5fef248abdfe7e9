"""The process that a worker starts for a flow run, and the address of a server's database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from deployments.server import settings
from rc1_lib.workspace.artifacts import PROJECT_ROOT
from rc1_lib.workspace.state import make_state

_ENGINE = """
import logging, runpy
begin = runpy.run_module
runpy.run_module = lambda name, run_name: print(name, logging.getLogger("bitsandbytes").level == logging.ERROR)
begin("deployments.engine", run_name="__main__")
"""


def test_flow_run_of_a_worker_silences_other_libraries_like_a_command() -> None:
    done = subprocess.run([sys.executable, "-c", _ENGINE], cwd=PROJECT_ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "prefect.engine True\n"), done.stderr


@pytest.mark.parametrize("name", ["x?y#z", "50 %41"])
def test_database_address_is_valid_for_any_name_of_a_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
    home = make_state(tmp_path / name)
    address = settings(tmp_path / name, "http://127.0.0.1:1")["PREFECT_SERVER_DATABASE_CONNECTION_URL"]
    with create_engine(address.replace("+aiosqlite", "")).connect() as database:
        database.exec_driver_sql("CREATE TABLE t (x)")
    assert (home / "prefect.db").exists()
    assert [path.name for path in tmp_path.iterdir()] == [name]
