"""Every benchmark starts as `make bench` calls it, and what a machine lacks for one is said, not passed over."""

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
STUB = """#!/bin/sh
echo "started $1"
case "$1" in *{name}) exit {code};; esac
"""


def bench(folder: Path, name: str, code: int) -> subprocess.CompletedProcess[str]:
    """`make bench` with an interpreter that ends so for one script and well for all others."""
    (folder / "bin").mkdir()
    (folder / "bin/python").write_text(STUB.format(name=name, code=code))
    (folder / "bin/python").chmod(0o755)
    (folder / ".installed").touch()
    return subprocess.run(
        ["make", "bench", f"VENV={folder}"], cwd=PROJECT_ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def test_make_bench_goes_past_what_this_machine_lacks_and_lists_it(tmp_path: Path) -> None:
    done = bench(tmp_path, "bench_team.py", 77)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("started")] == [
        f"started benchmarks/{name}" for name in BENCHMARKS
    ]
    assert [line for line in lines if line.startswith("NOT RUN")] == [
        "NOT RUN: benchmarks/bench_team.py (above: why, and how to run it)"
    ]


def test_make_bench_ends_where_a_benchmark_fails(tmp_path: Path) -> None:
    done = bench(tmp_path, BENCHMARKS[1], 1)
    assert done.returncode != 0
    assert done.stdout.count("started") == 2 and "NOT RUN" not in done.stdout


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_that_imports_what_is_not_installed_finds_it(name: str) -> None:
    """`tests` is on the path of whoever runs tests, and of nobody else."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    before, found, _ = text.partition("sys.path.insert(0, str(Path(__file__).parents[1]))\n")
    for package in ("rc1_lib", "tests", "deployments"):
        imported = f"\nfrom {package}" in text
        assert not imported or (found and f"\nfrom {package}" not in before), f"{name} imports {package}"


@pytest.mark.long
def test_every_benchmark_starts_as_make_calls_it() -> None:
    paths = [str(FOLDER / name) for name in BENCHMARKS]
    each = "import runpy, sys; sys.path[0] = sys.argv[1]; [runpy.run_path(path) for path in sys.argv[2:]]"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-c", each, str(FOLDER), *paths], env=environment, cwd="/", check=True)


def beside_trl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`bench_trl_environment.py` in a copy of the folder, where its results do no harm."""
    shutil.copytree(FOLDER, folder / "benchmarks", ignore=shutil.ignore_patterns("results"))
    (folder / "benchmarks/results").mkdir()
    command = [sys.executable, folder / "benchmarks/bench_trl_environment.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)


@pytest.mark.long
def test_rc1_and_trl_step_the_same_job(tmp_path: Path) -> None:
    from tests.training.tiny_world import pool_rows  # imports torch, which nothing else in this folder needs

    pool = tmp_path / "pool.jsonl"
    pool.write_text("".join(json.dumps(row) + "\n" for row in pool_rows(30)))
    sizes = ("--prompts=2", "--takes=2", "--passes=2", "--steps=1", "--repeats=1", "--cores=1", "--response=12")
    done = beside_trl(tmp_path, f"--model={PROJECT_ROOT}/models/embedded", f"--pool={pool}", "--equal", *sizes)
    assert done.returncode == 0, done.stderr
    (job,) = json.loads((tmp_path / "benchmarks/results/trl_environment.json").read_bytes())["jobs"]
    assert set(job["sides"]) == {"torch_grpo", "trl", "torch_ppo"}
    lengths = {side: found["sampled_an_episode"] for side, found in job["sides"].items()}
    assert set(lengths.values()) == {12}, lengths
    assert len({found["read_an_episode"] for found in job["sides"].values()}) == 1, "prompts of one length"
    assert "torch_grpo / trl" in done.stdout


def test_without_a_model_nothing_is_compared_and_how_it_can_be_is_said(tmp_path: Path) -> None:
    done = beside_trl(tmp_path)
    assert done.returncode == 77, done.stderr
    assert done.stdout.startswith("NOT RUN: RC1's engines next to TRL's GRPOTrainer: ")
    assert "bench_trl_environment.py --model FOLDER --pool FILE" in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--prompts=3", "--takes=2"], "--passes: found 4, expected a divisor of 6 episodes"),
        (["--model=models/embedded"], "--model and --pool go together"),
    ],
)
def test_a_job_that_cannot_be_is_refused(given: list[str], said: str, tmp_path: Path) -> None:
    done = beside_trl(tmp_path, *given)
    assert done.returncode == 2 and said in done.stderr, done.stderr
