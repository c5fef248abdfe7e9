"""What story parts share: the numbers that a part tells, the sums it needs, and what is counted afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rc1_lib.sources.embedded.scene import Scene


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a story.

    Attributes:
        blanks: the texts of its wording, by name; numbers among them can be withheld.
        sums: expressions with their results, in order.
        unit: what the last result counts, which decides the question and what may happen next.
    """

    blanks: Mapping[str, str | int]
    sums: tuple[tuple[str, int], ...]
    unit: str

    @property
    def value(self) -> int:
        """The last sum's result."""
        return self.sums[-1][1]


@dataclass(frozen=True, slots=True)
class Opening:
    """A way for a story to begin: how many sums it needs and how its numbers are drawn."""

    sums: int
    draw: Callable[[Scene], Part]
