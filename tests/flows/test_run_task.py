"""What a task of a run is given: the run itself, into which Prefect does not look, and whatever else as ever."""

from __future__ import annotations

from collections.abc import Callable, ItemsView
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prefect import Task, flow, task

from flows.endings import ONE_AT_A_TIME
from rc1_lib.run import Run, open_run
from tasks.run_task import run_task

Given = list[Any]


class Watched(dict[str, str]):
    """A mapping that counts who goes through it."""

    looked = 0

    def items(self) -> ItemsView[str, str]:
        self.looked += 1
        return super().items()


def ran(step: Callable[..., Any], run: Run) -> None:
    """Run a task by each of the ways in which flows do, beside a future of another."""

    @task
    def before() -> str:
        return "what another found"

    @flow(task_runner=ONE_AT_A_TIME)
    def two() -> None:
        beside = before.submit()
        step(run, beside)
        step(run=run, beside="a value", return_state=True)
        step.submit(run, beside=beside).wait()  # type: ignore[attr-defined]

    two()


@pytest.mark.parametrize(("made", "looks"), [(run_task(name="of a run"), False), (task, True)])
def test_prefect_looks_into_what_a_task_is_given_but_for_a_run(
    made: Callable[[Callable[..., Any]], Task[..., Any]], looks: bool, tmp_path: Path
) -> None:
    watched, given = Watched(pool="its hash"), Given()
    run = replace(open_run(workspace=tmp_path), vouched=watched)

    def step(run: Run, beside: str) -> None:
        given.append((run, beside))

    ran(made(step), run)
    assert [one is run for one, _ in given] == [True] * 3
    assert [beside for _, beside in given] == ["what another found", "a value", "what another found"]
    assert bool(watched.looked) is looks
