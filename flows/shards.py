"""Evaluates gates in other processes: one gate is one shard, which gets the run's settings and never a row.

Only gates that just read files are distributed. Each hashes its files where it runs, and the round accepts its verdict
only if the hashes match the round's own. So a shard may be evaluated twice, and if its process is lost, it is evaluated
here. Gates that look at the disk, the clock, git or the judge's log stay in the flow's process, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from rc1_lib.errors import ConfigError
from rc1_lib.preflight.gates import BY_NAME
from rc1_lib.records import GateResult
from rc1_lib.run import Run
from tasks.gates import gate

PATIENCE_S = 1800.0
"""Timeout of one shard while others run at the same time; a gate takes 90 s at 300,000 rows."""


class Shards(Protocol):
    """Evaluates some gates of a round elsewhere."""

    def __call__(self, names: Sequence[str], run: Run, number: int, before: Mapping[str, GateResult]) -> Found:
        """Start the evaluation; returns a function that waits for each gate's result or error."""


Found = Callable[[], dict[str, Any]]


def may_be_given_away(name: str) -> bool:
    """Whether a gate depends only on files, configuration and code."""
    return not BY_NAME[name].reads_world


@contextmanager
def dask_processes(processes: int) -> Iterator[Shards | None]:
    """A local Dask cluster for the duration of the block; None for 0 processes.

    It listens only on the loopback interface and requires its temporary certificate, since it receives code.

    Args:
        processes: of the cluster.

    Raises:
        ConfigError: for a number below 0, or if the extra `dask` is not installed.
    """
    if processes < 0:
        raise ConfigError(f"gate_processes: is {processes}, expected 0 (evaluate in the flow's process) or more")
    if processes == 0:
        yield None
        return
    try:
        from distributed import LocalCluster
        from prefect_dask import DaskTaskRunner
    except ImportError:
        raise ConfigError(
            f"gate_processes: is {processes}, which needs Dask; install it: pip install -c constraints.txt -e '.[dask]'"
        ) from None
    with (
        LocalCluster(
            n_workers=processes, threads_per_worker=1, host="127.0.0.1", security=True, dashboard_address=None
        ) as cluster,
        DaskTaskRunner(cluster=cluster) as runner,
    ):

        def judge(names: Sequence[str], run: Run, number: int, before: Mapping[str, GateResult]) -> Found:
            futures = {
                name: runner.submit(gate, {"run": run, "name": name, "number": number, "before": before.get(name)})
                for name in names
            }
            return lambda: {name: _left(future) for name, future in futures.items()}

        yield judge


def _left(future: Any) -> Any:
    """The result of a shard's task: its verdict, or the error that prevented it."""
    from distributed import CancelledError, KilledWorker

    try:
        return future.result(timeout=PATIENCE_S, raise_on_failure=False)
    except (KilledWorker, CancelledError, TimeoutError, OSError) as lost:
        return lost
