"""Profile one step: seconds by section and process, and a trace for Chrome or Perfetto."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from rc1_lib.errors import ConfigError
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.api import Batches, Engine, Strategy, make_engine
from rc1_lib.training.curriculum import Curriculum
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.ppo_run import Prepared, check_read
from rc1_lib.training.profiler import Section, Timing
from rc1_lib.training.resource_errors import WHILE_LEARNING, naming_breakdowns
from rc1_lib.workspace.artifacts import write_json

# A few steps of a run that is then discarded: same rows, initial policy, engine and judge, but nothing is written.


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


STAGE = "profile"
REPORT = "reports/step_profile.json"
TRACE = "reports/step_trace.json"
REST = "everything else"


def profile_step(prepared: Prepared, seed: int) -> dict[str, Any]:
    """Do two steps of a run that is then discarded. Write and return the profile of the second.

    The adapter learns in both, as after the value head's warm-up. No file of a real run changes.

    Args:
        prepared: what determines the run.

    Returns:
        The report: `seconds` of the step, `episodes`, the names of the `parts`, and for each of the `processes` the
        `seconds` and `spans` of every part.

    Raises:
        ConfigError: if the configured engine does not record its time.
    """
    config = prepared.run.config
    engine = make_engine(config.training.engine)
    if not isinstance(engine, PolicyEngine):
        raise ConfigError(
            f"--profile-step: the engine '{config.training.engine}' does not time its sections; use torch_ppo"
        )
    with dry_run(prepared, seed, engine) as run:
        for number in range(2):
            report_progress(STAGE, number, 2, "warm-up step" if number == 0 else "timed step")
            batch = run.next_batch()
            engine.start_timing()
            began = time.perf_counter()
            run.strategy.on_batch(batch)
            engine.train_step(batch)
            ended = time.perf_counter()
            kept = engine.timings()
        report_progress(STAGE, 2, 2)
    report = _report(kept, ended - began, config.batch_size)
    write_json(prepared.run.workspace.path(REPORT), report)
    write_json(prepared.run.workspace.path(TRACE), _trace(kept, began))
    return report


def _report(kept: Sequence[Sequence[Timing]], seconds: float, episodes: int) -> dict[str, Any]:
    processes = []
    for timings in kept:
        took: dict[str, float] = {
            section: sum(one.ended - one.began for one in timings if one.section is section) for section in Section
        }
        took[REST] = seconds - sum(took.values())
        processes.append(
            {"seconds": took, "spans": {section: sum(one.section is section for one in timings) for section in Section}}
        )
    return {"seconds": seconds, "episodes": episodes, "parts": [*Section, REST], "processes": processes}


def _trace(kept: Sequence[Sequence[Timing]], began: float) -> dict[str, Any]:
    """Build a trace in the format of Chrome's trace viewer and Perfetto, in microseconds since the step began."""
    names: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": rank, "args": {"name": f"process {rank}"}}
        for rank in range(1, len(kept) + 1)
    ]  # fmt: skip
    spans = [
        {
            "name": one.section, "ph": "X", "pid": rank, "tid": 1,
            "ts": (one.began - began) * 1e6, "dur": (one.ended - one.began) * 1e6,
        }
        for rank, timings in enumerate(kept, start=1)
        for one in timings
    ]  # fmt: skip
    return {"traceEvents": [*names, *spans], "displayTimeUnit": "ms"}
