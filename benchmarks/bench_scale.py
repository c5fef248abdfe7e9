"""Rows a second and peak memory of building, difficulty, balancing and each gate of the pool, at several sizes.

    python benchmarks/bench_scale.py [ROWS ...] [--workspace FOLDER] [--parts PART ...]

Each part runs in a process of its own on the same files, so that its peak memory is its own: that of the process when
the part has ended, beside what it was once the rows were read. Prints a table, and writes
`benchmarks/results/scale.json`, in which other sizes and parts stay as they were. A workspace that is named is kept, so
that single parts can be measured again. The same gates against plain Python and public tools: `bench_gates.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.artifacts import PROJECT_ROOT, write_json
from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.evidence import Evidence
from rc1_lib.pool.seed import build_seed
from rc1_lib.preflight.ahead import of_the_pool_alone
from rc1_lib.preflight.gates import BY_NAME, evaluate
from rc1_lib.run import Run, open_run

RESULTS = Path(__file__).parent / "results" / "scale.json"
GATES = tuple(name for name, spec in BY_NAME.items() if of_the_pool_alone(spec))
PARTS = ("build", "measure", "balance", *GATES, "difficulty")
"""In the order in which each finds what it reads."""


def prepared(run: Run, part: str) -> Callable[[], object]:
    """What the part does, once everything it reads has been read."""
    evidence = Evidence(run)
    if part == "build":
        return lambda: build_seed(run)
    evidence.rows("pool")
    if part == "measure":
        return lambda: write_metrics(run)
    if part == "balance":
        return lambda: write_balanced(run)
    if part == "difficulty":
        evidence.rows("balanced")
    return lambda: green(evidence, part)


def green(evidence: Evidence, gate: str) -> None:
    """Judge, and stop when the gate is not green: the figures of a red pool are of another pool."""
    result = evaluate(gate, evidence, 1)
    if result.failures or result.error:
        raise SystemExit(f"{gate}: {result.error or [check.name for check in result.failures]}")


def once(workspace: str, rows: int, part: str) -> dict[str, Any]:
    """One part, here and now."""
    work = prepared(open_run(workspace=workspace, overrides=[f"pool.n={rows}"]), part)
    before = peak_mib()
    start, spent = time.perf_counter(), cpu_s()
    work()
    seconds = time.perf_counter() - start
    return {
        "rows": rows,
        "part": part,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_s() - spent, 2),
        "rows_per_second": round(rows / seconds),
        "peak_mib": peak_mib(),
        "mib_before": before,
    }


def peak_mib() -> int:
    """The most memory that this process, or one that it waited for, has held."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024


def cpu_s() -> float:
    """Processor seconds of this process and of those it waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def measured(workspace: str, rows: int, part: str) -> dict[str, Any]:
    """One part in a process of its own, and its line of the table."""
    command = [sys.executable, __file__, "--part", workspace, str(rows), part]
    done = subprocess.run(command, cwd=PROJECT_ROOT, stdout=subprocess.PIPE, text=True, check=True)
    one: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{rows:8} {part:12} {one['seconds']:8.2f} {one['cpu_seconds']:8.2f} {one['rows_per_second']:9} "
        f"{one['peak_mib']:9} {one['mib_before']:7}",
        flush=True,
    )
    return one


def keep(one: dict[str, Any]) -> None:
    """Put one part's figures in the place of what was found of it before."""
    found = json.loads(RESULTS.read_bytes())["parts"] if RESULTS.exists() else []
    found = [other for other in found if (other["rows"], other["part"]) != (one["rows"], one["part"])]
    RESULTS.parent.mkdir(exist_ok=True)
    order = sorted([*found, one], key=lambda line: (line["rows"], PARTS.index(line["part"])))
    write_json(RESULTS, {"cores": os.cpu_count(), "parts": order})


def main() -> None:
    """Every part at every size, each in a process of its own."""
    asked = argparse.ArgumentParser()
    asked.add_argument("rows", nargs="*", type=int, default=[3000, 30000])
    asked.add_argument("--workspace")
    asked.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given = asked.parse_args()
    print(f"{'rows':>8} {'part':12} {'s':>8} {'CPU s':>8} {'rows/s':>9} {'peak MiB':>9} {'before':>7}")
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as passing:
            for part in given.parts:
                keep(measured(given.workspace or passing, rows, part))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(once(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
    else:
        main()
