"""What the worker starts for a flow run."""

from __future__ import annotations

import subprocess
import sys

from rc1_lib.workspace.artifacts import PROJECT_ROOT

_ENGINE = """
import logging, runpy
begin = runpy.run_module
runpy.run_module = lambda name, run_name: print(name, logging.getLogger("bitsandbytes").level == logging.ERROR)
begin("deployments.engine", run_name="__main__")
"""


def test_a_flow_run_of_a_worker_is_as_quiet_about_other_libraries_as_a_command() -> None:
    done = subprocess.run([sys.executable, "-c", _ENGINE], cwd=PROJECT_ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "prefect.engine True\n"), done.stderr
