"""The final states that flows choose themselves, and how their tasks run."""

from __future__ import annotations

from typing import Any

from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from tasks.endings import REFUSED

GATES_FAILED, FAULT = "GatesFailed", "GatesFaulted"
TICKET_ISSUED, ROUNDS_PASSED, TICKET_CONFIRMED = "TicketIssued", "RoundsPassed", "TicketConfirmed"
WEIGHTS_ADOPTED = "WeightsAdopted"
POLICY_IMPROVED, POLICY_TRAINED = "PolicyImproved", "PolicyTrained"
"""Training ended and its evaluation passed; training ended without an evaluation."""
CONTROL_PASSED = "ControlPassed"
"""Nothing was gained from a reward without information."""
SCALED_UP, NOT_APPROVED = "ScaledUp", "NotApproved"
"""The pool has its last size and every gate passed; a person refused to approve."""
RELEASED = "Released"
"""A package was written and verified."""
RED = (GATES_FAILED, REFUSED, NOT_APPROVED)
"""Failed states that are a verdict, not an error: exit code 2."""
ENDINGS = (
    GATES_FAILED, FAULT, REFUSED, TICKET_ISSUED, ROUNDS_PASSED, TICKET_CONFIRMED, WEIGHTS_ADOPTED, POLICY_IMPROVED,
    POLICY_TRAINED, CONTROL_PASSED, SCALED_UP, NOT_APPROVED, RELEASED,
)  # fmt: skip
"""All names of final states that flows choose themselves."""

# One gate at a time: polars and the near-duplicate search use all cores anyway, and rows are in memory only once.
ONE_AT_A_TIME: TaskRunner[PrefectFuture[Any]] = ThreadPoolTaskRunner(max_workers=1)  # type: ignore[assignment]
