"""Judging ahead: the gates that need nothing but the pool, while difficulty and calibration are worked out.

Those are Python on one core for the most part, and the gates leave Python's lock alone for the most part. What is found
green stays in this process (`rc1_lib.preflight.gates.evaluate`), under all that decides it. The round hashes the files
again, and judges by itself whatever is not there: what was red, could not be judged, or was judged on other bytes. So
time alone hangs on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from rc1_lib.evidence import Evidence
from rc1_lib.evidence.registry import GIVEN
from rc1_lib.pool.derived import POOL, SHADOW, TAKES
from rc1_lib.preflight.gates import GateSpec, evaluate, gates_of_round
from rc1_lib.run import Run

_THERE = {POOL.name, SHADOW.name, TAKES.name, *(one.name for one in GIVEN)}
"""What there is as soon as the pool is written."""


@contextmanager
def ahead(run: Run) -> Iterator[Callable[[], None]]:
    """Give the function that begins to judge; at the end of the block wait for the gates that were begun.

    A gate that meets a fault says nothing here: the round meets it again, and tells.
    """
    with ThreadPoolExecutor(1, "gates ahead") as judges:

        def begin() -> None:
            for spec in gates_of_round(1):
                if of_the_pool_alone(spec):
                    judges.submit(evaluate, spec.name, Evidence(run), 1)

        try:
            yield begin
        except BaseException:
            judges.shutdown(cancel_futures=True)
            raise


def of_the_pool_alone(spec: GateSpec) -> bool:
    """Whether a gate reads the pool, and nothing that is made behind it or stands in no file."""
    return not spec.reads_world and POOL.name in spec.reads and set(spec.reads) <= _THERE
