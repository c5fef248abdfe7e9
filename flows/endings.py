"""How a flow run can end by its own decision, and how its tasks are run."""

from __future__ import annotations

from typing import Any

from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from tasks.endings import REFUSED

GATES_FAILED, FAULT = "GatesFailed", "GatesFaulted"
TICKET_ISSUED, ROUNDS_PASSED, TICKET_CONFIRMED = "TicketIssued", "RoundsPassed", "TicketConfirmed"
WEIGHTS_ADOPTED = "WeightsAdopted"
POLICY_IMPROVED, POLICY_TRAINED = "PolicyImproved", "PolicyTrained"
"""Training ended and its evaluation is green; training ended, and no evaluation was asked for."""
CONTROL_PASSED = "ControlPassed"
"""Nothing was gained from a reward without information."""
SCALED_UP, NOT_APPROVED = "ScaledUp", "NotApproved"
"""The pool has its last size and every gate is green; a person who was asked said no."""
RELEASED = "Released"
"""A package was written, and is whole."""
RED = (GATES_FAILED, REFUSED, NOT_APPROVED)
"""The names of failed states that are a verdict, not a fault: exit code 2."""
ENDINGS = (
    GATES_FAILED, FAULT, REFUSED, TICKET_ISSUED, ROUNDS_PASSED, TICKET_CONFIRMED, WEIGHTS_ADOPTED, POLICY_IMPROVED,
    POLICY_TRAINED, CONTROL_PASSED, SCALED_UP, NOT_APPROVED, RELEASED,
)  # fmt: skip
"""Every name that a final state of a flow can have by its own decision."""

# One gate at a time: polars and the near-duplicate search use every core by themselves, and rows are held once.
ONE_AT_A_TIME: TaskRunner[PrefectFuture[Any]] = ThreadPoolTaskRunner(max_workers=1)  # type: ignore[assignment]
