"""Every benchmark can be imported as `make bench` runs it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from rc1_lib.workspace.artifacts import PROJECT_ROOT

FOLDER = PROJECT_ROOT / "benchmarks"
BENCHMARKS = sorted(path.name for path in FOLDER.glob("bench_*.py"))


@pytest.mark.long
def test_every_benchmark_can_be_imported_as_make_runs_it() -> None:
    paths = [str(FOLDER / name) for name in BENCHMARKS]
    each = "import runpy, sys; sys.path[0] = sys.argv[1]; [runpy.run_path(path) for path in sys.argv[2:]]"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", each, str(FOLDER), *paths], env=environment, cwd="/", check=True)
