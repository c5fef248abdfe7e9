"""Training that left the finite numbers, or came to nothing."""

from __future__ import annotations


class DivergedError(ArithmeticError):
    """No input is to blame and nothing was refused: a fault of the run, which ends with exit code 1 and a report."""


class CollapsedError(DivergedError):
    """The numbers are finite, and show a policy that is lost.

    Attributes:
        since: the first step that did.
    """

    def __init__(self, words: str, since: int) -> None:
        """Say what, and since when."""
        super().__init__(words)
        self.since = since
