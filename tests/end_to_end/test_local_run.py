"""A flow that a command runs where nothing has been started: with a server of its own, which ends with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from rc1_lib.artifacts import PROJECT_ROOT
from rc1_lib.preflight.gates import gates_of_round
from rc1_lib.run import Run

PROGRAM = """
import sys
from deployments.local_run import run_flow
end = run_flow("preflight", workspace=sys.argv[1], overrides=sys.argv[2:], build="never", rounds=[1])
print(end.state_name, end.message)
sys.exit(end.exit_code)
"""


def test_a_local_run_needs_nothing_running_and_tells_how_it_ended(built: Run, tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    shutil.copytree(built.workspace.root, root)
    # As in a user's shell: what another test's server left in the environment would be taken for a wish.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root), *built.overrides, "gates.training.min_seeds=9"],
        env={**bare, "PYTHONPATH": str(PROJECT_ROOT)}, stdout=subprocess.PIPE, text=True, timeout=800, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout.split()[0]) == (2, "GatesFailed")
    assert f"1 of {len(gates_of_round(1))} gates failed: training_config" in run.stdout
    assert (root / ".prefect/prefect.db").exists()
