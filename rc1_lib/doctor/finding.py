"""What one look found: well, or red with what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rc1_lib.run import Run


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and where it is red, what to do.

    Attributes:
        found: in words.
        advice: what to do; "" where all is well.
    """

    found: str
    advice: str = ""

    @property
    def red(self) -> bool:
        """Whether something has to be done."""
        return bool(self.advice)


Look = Callable[[Run], Finding]


def gib(size: float) -> str:
    """Bytes in GiB, as people read it."""
    return f"{size / 2**30:,.2f} GiB"
