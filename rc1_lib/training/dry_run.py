"""A few steps of a run that is then discarded: same rows, initial policy, engine and judge, but nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from rc1_lib.training.api import Batches, Engine, Strategy
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.ppo_run import Prepared, check_read
from rc1_lib.training.resource_errors import WHILE_LEARNING, naming_breakdowns


@dataclass(slots=True)
class DryRun:
    """A run in progress that will be discarded.

    Attributes:
        strategy: plays the rows.
        engine: learns; already set up.
    """

    strategy: Strategy
    engine: Engine
    _batches: Batches
    _first: int
    _given: int = 0

    def next_batch(self) -> dict[str, Any]:
        """Return the next rows.

        Steps are numbered from the end of the value head's warm-up, so the adapter learns too.
        """
        batch = self._batches.next() | {"step": self._first + self._given}
        self._given += 1
        return batch


@contextmanager
def dry_run(prepared: Prepared, seed: int, engine: Engine) -> Iterator[DryRun]:
    """Start a run with an engine that is not set up yet, and close the engine at the end.

    Raises:
        BreakdownError: if the disk or memory is full.
    """
    config = prepared.run.config
    with (
        naming_breakdowns("Nothing of these steps is kept", WHILE_LEARNING),
        closing(engine),
    ):
        engine.setup(prepared.setup(seed))
        check_read(prepared)
        strategy = prepared.strategy(seed)
        strategy.attach_engine(engine)
        batches = Curriculum(prepared.selection.train, config.priority_sampling, config.prompts, seed)
        yield DryRun(strategy, engine, batches, config.training.ppo.value_warm_up)
