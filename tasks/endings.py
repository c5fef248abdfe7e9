"""How tasks and flows end: with a verdict, a message for the user, or an error that may be temporary."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from prefect import State, Task, task
from prefect.client.schemas.objects import TaskRun
from prefect.futures import PrefectFuture
from prefect.results import ResultRecord  # type: ignore[attr-defined]  # it is public, and only imported there
from prefect.states import Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from rc1_lib.errors import RC1Error

P = ParamSpec("P")
R = TypeVar("R")

REFUSED = "Refused"
"""The state's name if the user must fix something; its message says what."""

CACHED = "Cached"
"""The state's name if the task's result existed already; Prefect uses the same name."""
GATES_FAILED, FAULT = "GatesFailed", "GatesFaulted"
TICKET_ISSUED, ROUNDS_PASSED, TICKET_CONFIRMED = "TicketIssued", "RoundsPassed", "TicketConfirmed"
WEIGHTS_ADOPTED = "WeightsAdopted"
POLICY_IMPROVED, POLICY_TRAINED = "PolicyImproved", "PolicyTrained"
"""Training ended and its evaluation passed; training ended without an evaluation."""
CONTROL_PASSED = "ControlPassed"
"""An uninformative reward brought no gain."""
SCALED_UP = "ScaledUp"
"""The pool has its last size, and every gate passed."""
NOT_PASSED = (GATES_FAILED, REFUSED)
"""Failed states that are a verdict, not an error: exit code 2."""

# One gate at a time: polars and the near-duplicate search use all cores anyway, and rows are in memory only once.
ONE_AT_A_TIME: TaskRunner[PrefectFuture[Any]] = ThreadPoolTaskRunner(max_workers=1)  # type: ignore[assignment]

RETRIES = 2
RETRY_DELAY_S = 1.0
_PASSING = frozenset(
    {errno.EIO, errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.ESTALE, errno.ENETDOWN, errno.ENETUNREACH}
    | {errno.EHOSTDOWN, errno.EHOSTUNREACH}
)


def is_transient(error: BaseException) -> bool:
    """Return whether the same call may succeed soon, after a temporary disk or network error or a timeout.

    A missing file, a full disk or a missing permission is not temporary.
    """
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    return isinstance(error, OSError) and error.errno in _PASSING


def retry_when_transient(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Return whether Prefect should retry: only after temporary errors, never after a verdict or a user error."""
    return isinstance(state.data, BaseException) and is_transient(state.data)


def retried(
    name: str, task_run_name: str | Callable[[dict[str, Any]], str] | None = None
) -> Callable[[Callable[P, R]], Task[P, R]]:
    """Like `prefect.task`, for idempotent work: retried after a temporary error, without storing results.

    Args:
        task_run_name: the name of each run, with parameters in braces, or a function with an argument called
            `parameters` that returns it; None: Prefect's default.
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
    """Turn user errors of a step into a failed state with the message, without a traceback."""

    @wraps(step)
    def run(*args: P.args, **kwargs: P.kwargs) -> R | State[Any]:
        try:
            return step(*args, **kwargs)
        except RC1Error as error:
            return Failed(name=REFUSED, message=str(error))

    return run


def raised_by(state: State[Any]) -> BaseException | None:
    """Return the error that a run of this process ended with, or None.

    `State.result` would also load what a state of the server names: a file that names its own serializer, so that
    reading it may run code.
    """
    data = state.data.result if isinstance(state.data, ResultRecord) else state.data
    return data if isinstance(data, BaseException) else None


def outcome(state: State[Any]) -> Any:
    """Return the value of a finished task.

    Raises:
        RC1Error: when the task ended with a user error.
        Exception: the task's own, when it failed otherwise.
    """
    if state.is_failed() and state.name == REFUSED:
        raise RC1Error(state.message or "a step could not run")
    return state.result()
