"""What the parts of a story have in common: the numbers they state, the sums they need, and what they count.

Sums are given as formulas, which both the generator and the solver evaluate. In a formula {a} is a number that the
part states, {v} the number that the story has reached before, and {0}, {1}, ... are the results of the part's own sums.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from rc1_lib.numbers.calculator import calculate
from rc1_lib.sources.embedded.scene import Scene

Unit = Literal[
    "goods", "both", "coins", "cost", "miles", "paces", "jugs", "pages", "days_book", "days_road", "eaten", "fodder",
    "age", "mean", "more", "each_child", "each_box", "each_partner",
]  # fmt: skip
"""What a story may count at its end; `story_asks.yaml` has a question for each."""
Numbers = Mapping[str, int]
Formulas = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Opening:
    """A way to begin a story.

    Attributes:
        unit: what its last result counts.
        formulas: its sums, in order.
    """

    unit: Unit
    formulas: Formulas
    draw: Callable[[Scene], Numbers]


@dataclass(frozen=True, slots=True)
class Turn:
    """A way to go on.

    Attributes:
        unit: what its last result counts; None if that stays as it was.
        formulas: its sums, in order.
        draw: draws the numbers that it states, given the one reached so far; None if they do not fit.
    """

    unit: Unit | None
    formulas: Formulas
    draw: Callable[[Scene, int], Numbers | None]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a story.

    Attributes:
        key: which opening or turn it is.
        numbers: the numbers that it states, by name; they can be withheld.
        sums: expressions with their results, in order.
        unit: what the last result counts; it decides the question and which turns may follow.
    """

    key: str
    numbers: Numbers
    sums: tuple[tuple[str, str], ...]
    unit: Unit

    @property
    def value(self) -> int:
        """The last sum's result."""
        return int(self.sums[-1][1])


def work_out(formulas: Formulas, numbers: Mapping[str, str | int]) -> tuple[tuple[str, str], ...]:
    """Return the expression and the result of each formula, as the calculator's input and output.

    Raises:
        CalculatorError: when a result is too large, or a sum divides by zero.
    """
    sums: list[tuple[str, str]] = []
    for formula in formulas:
        expression = formula.format(*(result for _, result in sums), **numbers)
        sums.append((expression, calculate(expression)))
    return tuple(sums)


def numbers_stated(formulas: Formulas) -> str:
    """Return the names of the numbers that a part states, in order, one letter each."""
    slots = {slot for formula in formulas for _, slot, _, _ in string.Formatter().parse(formula) if slot}
    return "".join(sorted(slot for slot in slots if slot.isalpha() and slot != "v"))
