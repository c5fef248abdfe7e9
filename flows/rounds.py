"""One round: evaluate all its gates independently of each other, and hash their files before and after.

Gates that only read files can be evaluated in other processes (`task_runner="dask"`). Such a process gets the run's
settings, but no rows, and hashes the files itself. The round accepts a verdict only if these hashes match its own, so a
gate may be evaluated twice; if a process is lost, its gate is evaluated here. Gates that read the disk, the clock, git
or the judge's log stay in the flow's process, in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from prefect.futures import wait
from prefect.logging import get_run_logger
from prefect.task_runners import TaskRunner

from rc1_lib.errors import ConfigError
from rc1_lib.evidence import Evidence
from rc1_lib.gates.gate_list import BY_NAME, gates_of_round, round_title
from rc1_lib.preflight.round_report import fingerprints, round_passed, tally
from rc1_lib.records import GateResult, Status
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.workspace.file_hashes import forget_hashes
from tasks.gates import faulted, gate, read_verdict

PATIENCE_S = 1800.0
"""Timeout of one gate in another process while others run at the same time; one takes 90 s at 300,000 rows."""
Runner = Literal["thread", "dask"]
"""What evaluates the gates that only read files: the flow's process, or Dask with a process a core."""
Verdict = tuple[GateResult | None, str]
"""The outcome of a gate's task: its result, or None and the error that prevented one."""


@dataclass(frozen=True, slots=True)
class JudgedRound:
    """The verdicts of a round.

    Attributes:
        number: the round; `NIGHTLY` for the gates of no round.
        results: one verdict per gate, in the round's order.
        faults: gates that could not be evaluated because of an error in program or machine -> the error.
    """

    number: int
    results: list[GateResult]
    faults: dict[str, str]

    @property
    def passed(self) -> bool:
        """Whether every gate passed."""
        return round_passed(self.results, self.number)


def judge_round(
    run: Run,
    number: int,
    *,
    before: Sequence[GateResult] = (),
    waiting: Mapping[str, str] | None = None,
    cluster: TaskRunner[Any] | None = None,
) -> JudgedRound:
    """Evaluate every gate of a round; evaluate again those whose evidence changed meanwhile or that met an error.

    Args:
        run: supplies files and configuration.
        number: 1, 2 or `NIGHTLY`.
        before: verdicts of the previous round; passes of gates that only read files are reused if these are the same.
        waiting: gate that is not evaluated -> what it waits for.
        cluster: from `other_processes`: evaluates the gates that only read files. None: this process evaluates all;
            second evaluations always run here.
    """
    waits = waiting or {}
    names = [spec.name for spec in gates_of_round(number) if spec.name not in waits]
    verdicts = _evaluated(run, number, names, {result.name: result for result in before}, cluster)
    now = _files_now(run)
    if doubtful := [name for name in names if not _holds(verdicts[name], now)]:
        get_run_logger().warning("evaluated once more: %s", ", ".join(doubtful))
        verdicts |= _evaluated(run, number, doubtful, {})
        now = _files_now(run)
    results, faults = [], {}
    for name in [spec.name for spec in gates_of_round(number)]:
        result, fault = verdicts.get(name, (None, ""))
        if name in waits:
            result = GateResult(name, waits_for=waits[name])
        elif result is None:
            faults[name] = fault
            result = faulted(name, fault)
        elif not _holds(verdicts[name], now):
            error = "its files changed while it was evaluated; run again when nothing writes to them"
            result = GateResult(name, error=error)
        results.append(result)
    report_progress(round_title(number), len(results), len(results), tally(results))
    return JudgedRound(number, results, faults)


def _evaluated(
    run: Run,
    number: int,
    names: Sequence[str],
    before: Mapping[str, GateResult],
    cluster: TaskRunner[Any] | None = None,
) -> dict[str, Verdict]:
    asked: dict[str, dict[str, Any]] = {
        name: {"run": run, "name": name, "number": number, "before": before.get(name)} for name in names
    }
    elsewhere = {}
    if cluster is not None:
        elsewhere = {name: cluster.submit(gate, asked[name]) for name in names if not BY_NAME[name].reads_world}
    here = {name: gate.submit(**asked[name]) for name in names if name not in elsewhere}
    wait(list(here.values()))
    # The verdict comes from the gate's data, not from the type of its state.
    found = {name: read_verdict(future.state.result(raise_on_failure=False)) for name, future in here.items()}
    return found | {name: read_verdict(_result_of(future)) for name, future in elsewhere.items()}


def _files_now(run: Run) -> dict[str, dict[str, str | None]]:
    """Return path and SHA-256 of every file of the preflight; each is read again."""
    forget_hashes()
    return fingerprints(Evidence(run))


def _holds(verdict: Verdict, now: Mapping[str, Mapping[str, str | None]]) -> bool:
    """Return whether there is a verdict, and the files that it is based on are unchanged."""
    result, _ = verdict
    if result is None or result.status not in (Status.PASSED, Status.FAILED):
        return result is not None
    # Files that only waived gates read are not among those of a round.
    read = [now[file] for file in BY_NAME[result.name].reads if file in now]
    return result.evidence == {one["path"]: one["sha256"] for one in read}


def other_processes(task_runner: Runner) -> AbstractContextManager[TaskRunner[Any] | None]:
    """Return Prefect's Dask task runner, or None within the block for `thread`.

    Its processes listen only on the loopback interface and require a temporary certificate, since they receive code.

    Raises:
        ConfigError: if the extra `dask` is not installed.
    """
    if task_runner == "thread":
        return nullcontext()
    try:
        from prefect_dask import DaskTaskRunner
    except ImportError:
        raise ConfigError(
            "task_runner: is dask, which is not installed; install it: pip install -c constraints.txt -e '.[dask]'"
        ) from None
    alone = {"host": "127.0.0.1", "security": True, "dashboard_address": None, "threads_per_worker": 1}
    runner: TaskRunner[Any] = DaskTaskRunner(cluster_kwargs=alone)
    return runner


def _result_of(future: Any) -> Any:
    """Return the result of a task in another process: its verdict, or the error that prevented it."""
    try:
        return future.result(timeout=PATIENCE_S, raise_on_failure=False)
    except Exception as lost:
        # A gate's own error is returned, not raised. Whatever this error is, the gate is evaluated here instead.
        return lost
