"""Measure rows per second and peak memory of building, difficulty, balancing and each gate of the pool, by size.

    python benchmarks/bench_scale.py [ROWS ...] [--workspace FOLDER] [--parts PART ...]

Each part runs in a separate process on the same files. Two values of that process's peak memory are printed: at the end
of the part, and before it, when the rows had been read. Prints a table, and writes `benchmarks/results/scale.json`,
which keeps the results of other sizes and parts. A given workspace is kept, so that single parts can be measured again.
`bench_gates.py` compares the same gates with plain Python and public tools.

The part `together` is all gates and difficulty at once, in two processes that have read the rows, as in a preflight's
round with `task_runner: dask`; its seconds are the wall-clock time from the first to the last gate.
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
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from queue import Empty, Queue
from threading import Barrier
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from rc1_lib.difficulty.steps import write_balanced, write_metrics
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import BY_NAME, evaluate
from rc1_lib.pool.seed import build_seed
from rc1_lib.run import Run, open_run
from rc1_lib.workspace.artifacts import PROJECT_ROOT, write_json

RESULTS = Path(__file__).parent / "results" / "scale.json"
GATES = tuple(name for name, spec in BY_NAME.items() if "pool" in spec.reads and not spec.reads_world)
JUDGED = (*GATES, "difficulty")
PARTS = ("build", "measure", "balance", *JUDGED, "together")
"""Ordered so that each part finds the files it reads."""
SLOWEST_FIRST = tuple(dict.fromkeys(("consistency", "leakage", "diversity", "duplicates", *JUDGED)))
PROCESSES = 2


def prepared(run: Run, part: str) -> Callable[[], object]:
    """Read everything that the part reads, and return a function that does its work."""
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
    return lambda: check_passes(evidence, part)


def check_passes(evidence: Evidence, gate: str) -> None:
    """Evaluate a gate, and stop if it fails, since the times of a failing pool are not comparable."""
    result = evaluate(gate, evidence, 1)
    if result.failures or result.error:
        raise SystemExit(f"{gate}: {result.error or [check.name for check in result.failures]}")


def once(workspace: str, rows: int, part: str) -> dict[str, Any]:
    """Measure one part in this process."""
    if part == "together":
        return together(workspace, rows)
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


def together(workspace: str, rows: int) -> dict[str, Any]:
    """Evaluate all gates and difficulty in several processes, each of which takes the slowest remaining gate."""
    process = get_context("spawn")
    with process.Manager() as shared, ProcessPoolExecutor(PROCESSES, process) as pool:
        left, ready = shared.Queue(), shared.Barrier(PROCESSES)
        for gate in SLOWEST_FIRST:
            left.put(gate)
        halves = [pool.submit(judge_what_is_left, workspace, rows, left, ready) for _ in range(PROCESSES)]
        found = [half.result() for half in halves]
    seconds = max(half["ended"] for half in found) - min(half["begun"] for half in found)
    return {
        "rows": rows,
        "part": "together",
        "reading_seconds": round(max(half["reading"] for half in found), 2),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(sum(half["cpu_seconds"] for half in found), 2),
        "rows_per_second": round(rows / seconds),
        "peak_mib": sum(half["peak_mib"] for half in found),
        "mib_before": sum(half["mib_before"] for half in found),
    }


def judge_what_is_left(workspace: str, rows: int, left: Queue[str], ready: Barrier) -> dict[str, float]:
    """Evaluate gates until none is left; times are of the machine's monotonic clock, which all processes share."""
    start = time.monotonic()
    evidence = Evidence(open_run(workspace=workspace, overrides=[f"pool.n={rows}"]))
    for name in ("pool", "balanced"):
        evidence.rows(name)
    reading, before = time.monotonic() - start, peak_mib()
    ready.wait()
    begun, spent = time.monotonic(), cpu_s()
    with suppress(Empty):
        while True:
            check_passes(evidence, left.get_nowait())
    ended = time.monotonic()
    return {
        "begun": begun, "ended": ended, "reading": reading, "cpu_seconds": cpu_s() - spent, "peak_mib": peak_mib(),
        "mib_before": before,
    }  # fmt: skip


def peak_mib() -> int:
    """Return the peak memory in MiB of this process or of one that it waited for."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024


def cpu_s() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def measured(workspace: str, rows: int, part: str) -> dict[str, Any]:
    """Measure one part in a separate process, and print its line of the table."""
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
    """Write one part's results in place of its earlier ones."""
    found = json.loads(RESULTS.read_bytes())["parts"] if RESULTS.exists() else []
    found = [other for other in found if (other["rows"], other["part"]) != (one["rows"], one["part"])]
    RESULTS.parent.mkdir(exist_ok=True)
    order = sorted([*found, one], key=lambda line: (line["rows"], PARTS.index(line["part"])))
    write_json(RESULTS, {"cores": os.cpu_count(), "parts": order})


def main() -> None:
    """Measure every part at every size."""
    asked = argparse.ArgumentParser()
    asked.add_argument("rows", nargs="*", type=int, default=[3000, 30000])
    asked.add_argument("--workspace")
    asked.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given = asked.parse_args()
    print(f"{'rows':>8} {'part':12} {'s':>8} {'CPU s':>8} {'rows/s':>9} {'peak MiB':>9} {'before':>7}")
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as temporary:
            for part in given.parts:
                keep(measured(given.workspace or temporary, rows, part))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--part"]:
        print(json.dumps(once(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
    else:
        main()
