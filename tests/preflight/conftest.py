"""Workspaces whose rounds have passed, and workspaces with a ticket."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rc1_lib.preflight.rounds import write_round
from rc1_lib.preflight.ticket import issue_ticket
from rc1_lib.records import GateResult
from rc1_lib.run import Run


@pytest.fixture
def passed(fresh_copy: Callable[..., Run], verdicts: dict[int, list[GateResult]]) -> Run:
    """A workspace whose two rounds have passed, without a ticket yet."""
    run = fresh_copy()
    for number in (1, 2):
        write_round(run, number, verdicts[number])
    return run


@pytest.fixture
def ticketed(passed: Run) -> Run:
    """A workspace with a valid ticket."""
    issue_ticket(passed)
    return passed
