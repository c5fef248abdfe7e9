"""Planning the rows before their step begins, while something else is waited for.

Embedded questions hang on the configuration alone, and so does what becomes of them: which of them are held out, which
row poses which. Nothing is written and no file is read, so that the plan is the same whenever it is made. The step
takes it where it was made for its very configuration, and plans by itself where not.
"""

from __future__ import annotations

from contextlib import suppress

from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import RC1Error
from rc1_lib.pool.build import Plans, plan
from rc1_lib.pool.derived import POOL
from rc1_lib.provenance.build_policy import Build
from rc1_lib.run import Run
from rc1_lib.runtime.gc_paused import uncollected
from rc1_lib.sources import load_questions

_PLANNED: list[tuple[RunConfig, Plans]] = []


def plan_ahead(run: Run, build: Build) -> None:
    """Plan shadow set and pool where there is no pool yet, or a new one is asked for, and no file decides them.

    What keeps them from being planned says nothing here: the step meets it again, and tells.

    Args:
        run: whose configuration and workspace.
        build: what the step will be told to build.
    """
    _PLANNED.clear()
    config = run.config
    wanted = build == "always" or (build == "auto" and not POOL.path(run).exists())
    if not wanted or config.sources.use != "embedded" or config.pool.hold_out is not None:
        return
    with suppress(RC1Error), uncollected():
        _PLANNED.append((config, plan(config, load_questions(config, run.workspace)[0])))


def planned_ahead(config: RunConfig) -> Plans | None:
    """The plan that was made for this configuration, given once, since who writes its rows counts them in it."""
    made = [plans for planned_for, plans in _PLANNED if planned_for == config]
    _PLANNED.clear()
    return made[0] if made else None
