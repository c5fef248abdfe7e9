"""Read a gate's verdict."""

from __future__ import annotations

from typing import Any

from rc1_lib.records import GateResult, Status


def failed(result: GateResult) -> set[str]:
    """Return the names of the failed checks, after asserting that the status follows from them and each has advice."""
    assert result.error == ""
    assert result.status is (Status.FAILED if result.failures else Status.PASSED)
    assert all(check.advice for check in result.failures)
    return {check.name for check in result.failures}


def value(result: GateResult, name: str) -> Any:
    """Return the value of a check."""
    return next(check.value for check in result.checks if check.name == name)


def advice(result: GateResult, name: str) -> str:
    """Return the advice of a check."""
    return next(check.advice for check in result.checks if check.name == name)
