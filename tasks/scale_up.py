"""The steps of a scale-up as Prefect tasks: what passed before, the rows of a size, its gates, its report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import State, task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.states import Completed

from rc1_lib.provenance.derived import Build
from rc1_lib.run import Run
from rc1_lib.runtime.progress import report_progress
from rc1_lib.scale_up import record
from rc1_lib.scale_up.looks import AFTER, BEFORE, STABILITY, Look, evaluate_gate
from rc1_lib.scale_up.report import PICTURE, REPORT, table, write_report
from rc1_lib.scale_up.sizes import Step, grow
from tasks.endings import CACHED, refusable, retried
from tasks.gates import state_of
from tasks.keys import provide_scorer_key
from tasks.reports import picture

DUE = "Due"
"""The state of a size that has not been reached."""


@retried(name="size", task_run_name="size {step.size}")
def green_before(run: Run, step: Step) -> State[tuple[Look, ...]]:
    """Check whether a size passed before with exactly the current bytes.

    Returns:
        A state named `CACHED` with the checks of that size, or `DUE` with none.
    """
    looks = record.read_record(run, step)
    if looks:
        return Completed(name=CACHED, message=f"{step.size:,} rows passed before, and nothing has changed", data=looks)
    return Completed(name=DUE, message=f"{step.size:,} rows are due", data=())


@retried(name="rows of a size", task_run_name="grow to {size}")
@refusable
def grown(run: Run, size: int, build: Build) -> list[str]:
    """Write the rows of a size, their measures and their balanced pool if they are missing or out of date."""
    return grow(run, size, build)


@retried(name="gate of a size", task_run_name="{name}, {title}")
def gate_of_size(run: Run, step: Step, name: str, again: bool, title: str) -> State[dict[str, Any]]:
    """Evaluate one gate of a size.

    Args:
        run: the run of the whole pool.
        again: whether to check the smaller size again.
        title: the title of the check, for people.
    """
    if name == STABILITY:
        provide_scorer_key(run)
    result = evaluate_gate(run, step, name, again=again)
    names = BEFORE if again else AFTER
    report_progress(f"size {title}", names.index(name) + 1, len(names), f"{name} {result.status.value}")
    return state_of(result)


@retried(name="keep size", task_run_name="keep size {step.size}")
def keep(run: Run, step: Step, looks: Sequence[Look]) -> str:
    """Write the report by which a passed size is recognised later; returns its path."""
    return record.write_record(run, step, looks)


@task(name="scale-up report", persist_result=False)
def report_scale_up(run: Run, looks: Sequence[Look], sentence: str) -> str:
    """Write the report of all sizes so far, show its table and picture in the UI, and return its path."""
    write_report(run, looks, sentence)
    create_table_artifact(key="rc1-scale-up", table=table(looks), description=sentence)
    create_markdown_artifact(
        key="rc1-scale-up-picture",
        markdown=f"# Scale-up\n\n{sentence}\n\n{picture(run, PICTURE, 'every measure against size')}\n",
        description=sentence,
    )
    return REPORT
