"""Every benchmark can be imported as `make bench` runs it, and the comparison with TRL compares equal work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def run_trl_benchmark(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `bench_trl_environment.py` in a copy of the folder, which takes its results."""
    shutil.copytree(FOLDER, folder / "benchmarks", ignore=shutil.ignore_patterns("results"))
    (folder / "benchmarks/results").mkdir()
    command = [sys.executable, folder / "benchmarks/bench_trl_environment.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)


@pytest.mark.long
def test_trl_benchmark_runs_and_rejects_unequal_work(tmp_path: Path) -> None:
    from tests.training.tiny_world import pool_rows  # imports torch, which nothing else in this folder needs

    pool = tmp_path / "pool.jsonl"
    pool.write_text("".join(json.dumps(row) + "\n" for row in pool_rows(30)))
    sizes = ("--prompts=2", "--takes=2", "--passes=2", "--steps=1", "--repeats=1", "--cores=1", "--response=12")
    job = (f"--model={PROJECT_ROOT}/models/embedded", f"--pool={pool}", *sizes)
    done = run_trl_benchmark(tmp_path / "own", *job)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads((tmp_path / "own/benchmarks/results/trl_environment.json").read_bytes())["jobs"]
    assert set(found["sides"]) == {"torch_grpo", "trl", "torch_ppo"}
    assert "torch_grpo / trl" in done.stdout
    # The bundled base is too small to keep its turns from ending, so that the job is not comparable.
    equal = run_trl_benchmark(tmp_path / "equal", *job, "--equal", "--only", "torch_grpo")
    assert (equal.returncode, "--equal: " in equal.stderr) == (1, True), equal.stderr
