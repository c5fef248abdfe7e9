"""What the parts of a story have in common: the numbers they state, the sums they need, and what they count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from rc1_lib.sources.embedded.scene import Scene

Unit = Literal[
    "goods", "both", "coins", "cost", "miles", "paces", "jugs", "pages", "days_book", "days_road", "eaten", "fodder",
    "age", "mean", "more", "each_child", "each_box", "each_partner",
]  # fmt: skip
"""What a story may count at its end; `story_asks.yaml` has a question for each."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a story.

    Attributes:
        blanks: the texts of its wording, by name; numbers among them can be withheld.
        sums: expressions with their results, in order.
        unit: what the last result counts; it decides the question and which turns may follow.
    """

    blanks: Mapping[str, str | int]
    sums: tuple[tuple[str, int], ...]
    unit: Unit

    @property
    def value(self) -> int:
        """The last sum's result."""
        return self.sums[-1][1]


@dataclass(frozen=True, slots=True)
class Opening:
    """A way to begin a story: the number of its sums, the names of its numbers, and how these are drawn."""

    sums: int
    numbers: str
    draw: Callable[[Scene], Part]
