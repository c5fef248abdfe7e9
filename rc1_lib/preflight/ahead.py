"""Judging ahead: the gates that need nothing but the pool, while difficulty and calibration are worked out.

Those are Python on one core for the most part, so the gates are judged in a process of their own. What it finds green
comes back under all that decides it (`rc1_lib.preflight.known_verdicts`). The round hashes the files again, and judges
by itself whatever is not there: what was red, could not be judged, was judged on other bytes or by other code, or was
lost with its process. So time alone hangs on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress

from rc1_lib.evidence import Evidence
from rc1_lib.evidence.registry import GIVEN
from rc1_lib.pool.derived import POOL, SHADOW, TAKES
from rc1_lib.preflight.gates import GateSpec, evaluate, gates_of_round
from rc1_lib.preflight.known_verdicts import Known, adopt, newest
from rc1_lib.run import Run
from rc1_lib.runtime.workers import worker_processes

_THERE = {POOL.name, SHADOW.name, TAKES.name, *(one.name for one in GIVEN)}
"""What there is as soon as the pool is written."""
_LARGE = 5000
"""Rows from which on a process saves more than its start costs: it imports for two seconds, a row costs 0.7 ms."""


@contextmanager
def ahead(run: Run) -> Iterator[Callable[[], None]]:
    """Give the function that begins to judge; at the end of the block wait for the gates that were begun.

    Nothing is judged ahead of a small pool, nor where `pool.workers` asks for no process beside this one.
    """
    if run.config.pool.n < _LARGE or run.config.pool.workers == 1:
        yield lambda: None
        return
    with worker_processes(1) as judges, judging(run, judges) as begin:
        yield begin


@contextmanager
def judging(run: Run, judges: Executor) -> Iterator[Callable[[], None]]:
    """As `ahead`, by the given judges, whatever the size of the pool.

    A gate that meets a fault says nothing here: the round meets it again, and tells.
    """
    begun: list[Future[Known | None]] = []

    def begin() -> None:
        with suppress(BrokenExecutor):
            for spec in filter(of_the_pool_alone, gates_of_round(1)):
                begun.append(judges.submit(_found_green, run, spec.name))

    try:
        yield begin
    except BaseException:
        judges.shutdown(cancel_futures=True)
        raise
    for one in begun:
        if one.exception() is None and (known := one.result()) is not None:
            adopt(known)


def of_the_pool_alone(spec: GateSpec) -> bool:
    """Whether a gate reads the pool, and nothing that is made behind it or stands in no file."""
    return not spec.reads_world and POOL.name in spec.reads and set(spec.reads) <= _THERE


def _found_green(run: Run, name: str) -> Known | None:
    evaluate(name, Evidence(run), 1)
    return newest(name)
