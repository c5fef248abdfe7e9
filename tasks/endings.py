"""How a task may end other than well: refused, with a sentence for the user, or by a fault that may pass by itself."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from prefect import State, Task, task
from prefect.client.schemas.objects import TaskRun
from prefect.states import Failed

from rc1_lib.errors import RC1Error

P = ParamSpec("P")
R = TypeVar("R")

REFUSED = "Refused"
"""The state's name when the user has something to mend; its message is the whole sentence."""

CACHED = "Cached"
"""The state's name when what a task makes was there already, by Prefect's own name for such."""

RETRIES = 2
RETRY_DELAY_S = 1.0
_PASSING = frozenset(
    {errno.EIO, errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.ESTALE, errno.ENETDOWN, errno.ENETUNREACH}
    | {errno.EHOSTDOWN, errno.EHOSTUNREACH}
)


def is_transient(error: BaseException) -> bool:
    """Whether the same call may well succeed in a moment: a disk or a network that hiccups, a timeout.

    A missing file, a full disk or a missing permission stays as it is, so it is not transient.
    """
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    return isinstance(error, OSError) and error.errno in _PASSING


def retry_when_transient(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Prefect's question whether to try again: yes for transient faults only, never for a verdict or a refusal."""
    return isinstance(state.data, BaseException) and is_transient(state.data)


def retried(
    name: str, task_run_name: str | Callable[[dict[str, Any]], str] | None = None
) -> Callable[[Callable[P, R]], Task[P, R]]:
    """`prefect.task` for whatever may be done twice: tried again after a transient fault, and no result of it is kept.

    Args:
        name: the task's.
        task_run_name: of each of its runs, with its parameters in braces, or made from them by a function whose
            argument is called `parameters`; None: as Prefect names them.
    """
    return task(
        name=name,
        task_run_name=task_run_name,  # type: ignore[arg-type]  # Prefect's type wants a method that functions lack
        retries=RETRIES,
        retry_delay_seconds=RETRY_DELAY_S,
        retry_condition_fn=retry_when_transient,
        persist_result=False,
    )


def refusable(step: Callable[P, R]) -> Callable[P, R | State[Any]]:
    """Turn the user's errors of a step into a red state that says the sentence, without a traceback."""

    @wraps(step)
    def run(*args: P.args, **kwargs: P.kwargs) -> R | State[Any]:
        try:
            return step(*args, **kwargs)
        except RC1Error as error:
            return Failed(name=REFUSED, message=str(error))

    return run


def outcome(state: State[Any]) -> Any:
    """What a finished task returned.

    Raises:
        RC1Error: when the task was refused.
        Exception: the task's own, when it failed by a fault.
    """
    if state.is_failed() and state.name == REFUSED:
        raise RC1Error(state.message or "a step was refused")
    return state.result()
