"""The result of one check: fine, or failed with advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rc1_lib.run import Run


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, and, if it failed, what to do.

    Attributes:
        advice: what to do; "" if all is well.
    """

    found: str
    advice: str = ""

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return bool(self.advice)


Look = Callable[[Run], Finding]


def gib(size: float) -> str:
    """Bytes in GiB, as people read it."""
    return f"{size / 2**30:,.2f} GiB"
