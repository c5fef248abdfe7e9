"""Training that left the finite numbers."""

from __future__ import annotations


class DivergedError(ArithmeticError):
    """No input is to blame and nothing was refused: a fault of the run, which ends with exit code 1 and a report."""
