"""Tasks that are handed a run as it is: Prefect looks for futures in all that a task is given.

It would go through every key of the configuration several times a task run, 3 ms each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from prefect import Task
from prefect.utilities.annotations import opaque

from rc1_lib.run import Run

P = ParamSpec("P")
R = TypeVar("R")


class RunTask(Task[P, R]):
    """A task; of what it is given, Prefect does not look into a `Run`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it here, as `Task` does."""
        return super().__call__(*map(_closed, args), **{name: _closed(value) for name, value in kwargs.items()})

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Have the task runner run it, as `Task` does."""
        return super().submit(*map(_closed, args), **{name: _closed(value) for name, value in kwargs.items()})


def run_task(**options: Any) -> Callable[[Callable[P, R]], Task[P, R]]:
    """`prefect.task` for a task of a run, with the same options."""

    def made(step: Callable[P, R]) -> Task[P, R]:
        return RunTask(step, **options)

    return made


def _closed(value: Any) -> Any:
    return cast(Any, opaque(value)) if isinstance(value, Run) else value
