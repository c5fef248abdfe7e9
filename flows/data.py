"""The data stages at the beginning of every flow."""

from __future__ import annotations

from prefect.logging import get_run_logger

from rc1_lib.provenance.build_policy import Build
from rc1_lib.run import Run
from tasks.data import balanced, metrics, seed
from tasks.endings import REFUSED, outcome


def prepare(run: Run, build: Build) -> None:
    """Build what is missing: shadow set and pool, metrics, balanced pool.

    Args:
        run: the run.
        build: what counts as missing.

    Raises:
        RC1Error: when the sources cannot be read.
    """
    run.write_effective_config()
    outcome(seed(run, build, return_state=True))
    for stage in (metrics, balanced):
        state = stage(run, build, return_state=True)
        if state.name == REFUSED:
            # The gates report a pool that cannot be measured: each gate that reads it ends with an error.
            get_run_logger().warning("%s", state.message)
        else:
            outcome(state)
