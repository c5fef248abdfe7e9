"""Transient faults are retried; verdicts and rejections are not."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from prefect import State, task

from rc1_lib.errors import RC1Error, SourceError
from tasks.data import balanced, metrics, seed
from tasks.endings import RETRIES, outcome, refusable, retry_when_transient
from tasks.gates import gate


def attempts(endings: list[Any]) -> tuple[int, State[Any]]:
    """Run a task with the project's retry rule; attempt k raises `endings[k]` or returns it."""
    made = 0

    @task(retries=RETRIES, retry_condition_fn=retry_when_transient)
    @refusable
    def step() -> Any:
        nonlocal made
        made += 1
        ending = endings[made - 1]
        if isinstance(ending, BaseException):
            raise ending
        return ending

    state: State[Any] = step(return_state=True)
    return made, state


@pytest.mark.parametrize(
    "fault", [OSError(errno.EIO, "input/output error"), TimeoutError("slow"), ConnectionResetError("gone")]
)
def test_transient_fault_is_retried(fault: Exception) -> None:
    made, state = attempts([fault, "done"])
    assert (made, state.is_completed()) == (2, True)


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "disk full"), FileNotFoundError(errno.ENOENT, "gone"), ZeroDivisionError("a bug")]
)
def test_permanent_fault_is_not_retried(fault: Exception) -> None:
    made, state = attempts([fault, "done"])
    assert (made, state.is_failed()) == (1, True)


def test_rejection_is_not_retried_and_keeps_its_message() -> None:
    made, state = attempts([SourceError("data/gsm8k: there is no such folder"), "done"])
    assert (made, state.name, state.message) == (1, "Refused", "data/gsm8k: there is no such folder")
    with pytest.raises(RC1Error, match=r"^data/gsm8k: "):
        outcome(state)


@pytest.mark.parametrize("step", [gate, seed, metrics, balanced])
def test_task_that_reads_files_has_the_retry_rule(step: Any) -> None:
    assert (step.retries, step.retry_condition_fn) == (RETRIES, retry_when_transient)
