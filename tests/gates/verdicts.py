"""What the tests of gates read of a verdict."""

from __future__ import annotations

from typing import Any

from rc1_lib.records import GateResult, Status


def failed(result: GateResult) -> set[str]:
    """The names of the failed checks, after making sure that the verdict follows from them and says what to do."""
    assert result.error == ""
    assert result.status is (Status.FAILED if result.failures else Status.PASSED)
    assert all(check.advice for check in result.failures)
    return {check.name for check in result.failures}


def value(result: GateResult, name: str) -> Any:
    """What a check found."""
    return next(check.value for check in result.checks if check.name == name)


def advice(result: GateResult, name: str) -> str:
    """What a check says to do."""
    return next(check.advice for check in result.checks if check.name == name)
