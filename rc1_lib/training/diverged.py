"""Training that left the finite numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager


class DivergedError(ArithmeticError):
    """No input is to blame and nothing was refused: a fault of the run, which ends with exit code 1 and a report."""


def refuse_not_finite(what: str, found: float, remedy: str) -> None:
    """Refuse to learn on from a number that is none; asked before the optimizer's step.

    Args:
        what: what is measured.
        found: the number.
        remedy: what to do.

    Raises:
        DivergedError: when it is NaN or infinite.
    """
    if not math.isfinite(found):
        raise DivergedError(f"{what} is {found}, expected a finite number: {remedy}")


@contextmanager
def naming_step(step: int) -> Iterator[None]:
    """Say in which step the block left the finite numbers.

    Raises:
        DivergedError: as in the block, with the step before it.
    """
    try:
        yield
    except DivergedError as error:
        raise DivergedError(f"step {step}: {error}") from error
