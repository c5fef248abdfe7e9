"""Every benchmark starts as `make bench` calls it, and what a machine lacks for one is said, not passed over."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from rc1_lib.workspace.artifacts import PROJECT_ROOT

FOLDER = PROJECT_ROOT / "benchmarks"
BENCHMARKS = sorted(path.name for path in FOLDER.glob("bench_*.py"))
STUB = """#!/bin/sh
echo "started $1"
case "$1" in *{name}) exit {code};; esac
"""


@pytest.fixture
def trl(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module `bench_trl_ppo`."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    spec = importlib.util.spec_from_file_location("bench_trl_ppo", FOLDER / "bench_trl_ppo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in {"job", "lacking"} - before:
        sys.modules.pop(name, None)


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


def test_without_trl_nothing_is_compared_and_how_it_can_be_is_said(
    trl: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trl.main([]) == 77
    told = capsys.readouterr().out
    assert told.startswith("NOT RUN: PPO beside TRL's PPOTrainer: ")
    assert "trl==1.12.0" in told and "python benchmarks/bench_trl_ppo.py DIR/bin/python" in told


def test_lengths_and_episodes_of_a_job_are_what_was_asked_for(trl: ModuleType, tmp_path: Path) -> None:
    small = trl.parsed(["python", "--prompt", "48", "--response", "40", "--episodes", "256", "--cores", "1"])
    assert set(small.sizes) == {(256, 256), (128, 256), (64, 256), (128, 64), (128, 16)}
    assert trl.named(small, 1) == "48 + 40 tokens, 256 episodes, 1 epochs, 1 cores"
    job = trl.job_of(small, tmp_path, 1)
    prompts = trl.json.loads(Path(job.prompts).read_bytes())
    assert (job.episodes, job.response) == (256, 40)
    assert len(prompts) == 256 and {len(prompt) for prompt in prompts} == {48}
    assert len(Path(job.rows).read_text().splitlines()) == 256
    usual = trl.parsed(["python"])
    assert set(usual.sizes) == {(128, 128), (64, 128), (32, 128), (64, 32), (64, 8)}
    assert trl.named(usual, 2) == "96 + 128 tokens, 1 epochs, 2 cores", "as the results that are there are called"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--episodes", "255"], "--episodes: found 255, expected a multiple of 4"),
        (["--batches", "128", "48"], r"--batches: found \[128, 48\], expected two that divide 128 episodes"),
        (["--model", "models/embedded"], "--model and --pool go together"),
    ],
)
def test_a_job_that_cannot_be_is_refused(
    trl: ModuleType, given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        trl.parsed(["python", *given])
    assert refused.value.code == 2
    captured = capsys.readouterr().err
    assert re.search(told, captured), captured


def test_a_prompt_that_is_shorter_than_its_frame_is_refused(trl: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"--prompt: found 2, expected more than the \d+ tokens around"):
        trl.job_of(trl.parsed(["python", "--prompt", "2"]), tmp_path, 1)
