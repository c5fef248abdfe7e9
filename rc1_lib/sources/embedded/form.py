"""The logic of a question about looked-up facts: whom it names, which facts it needs, and how they decide the answer.

Generator and solver share it, so that what a question means is written once: the generator draws a world and works out
the answer, and the solver reads a row's text and works out which answers are possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rc1_lib.numbers.calculator import calculate
from rc1_lib.records import Task
from rc1_lib.sources.embedded.relations import relations

Asks = Literal["leaf", "least", "most", "difference", "verdict"]
Leaf = str | int
"""What a leg leads to: an entity's name, or a number."""


@dataclass(frozen=True, slots=True)
class Start:
    """An entity that the question names.

    Attributes:
        stated: relation -> the question's slot with its value: what the question says about the entity in addition. If
            the name is withheld, this describes it.
    """

    kind: str
    stated: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Leg:
    """Relations to follow from a start, one page each; the last one leads to a leaf.

    Attributes:
        start: the question's slot with the start.
        names: the question's slot with the entity that the last relation also names; empty if there is none.
    """

    start: str
    path: tuple[str, ...]
    names: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of question.

    Attributes:
        starts: slot -> the entity in it.
        legs: the facts that the answer needs, in the order of look-up.
        asks: `leaf`: the answer is the first leg's leaf. `least`, `most`: the entity with that number. `difference`: of
            two numbers. `verdict`: yes or no, by `sums` or by `same`.
        sums: templates of the sums, in order: `{0}` is the first leg's leaf, `{r0}` the first sum's result, `{n}` the
            number that the question states.
        same: for a verdict without sums, the two things that have to be the same: legs by number, or slots.
        counts: whether the question states a number `{n}`.
    """

    task: Task
    starts: Mapping[str, Start]
    legs: tuple[Leg, ...]
    asks: Asks
    sums: tuple[str, ...] = ()
    same: tuple[str, str] | None = None
    counts: bool = False

    @property
    def slots(self) -> str:
        """The slots of its wordings, one letter each."""
        stated = [letter for start in self.starts.values() for letter in start.stated.values()]
        named = [leg.names for leg in self.legs if leg.names]
        own = [letter for letter in self.same or () if letter.isalpha()]
        return "".join(dict.fromkeys([*self.starts, *stated, *named, *own])) + "n" * self.counts

    def kinds(self) -> Mapping[str, str]:
        """Return the kind of entity in every slot that has one; slots with numbers are left out."""
        known, of = relations().by_name, {letter: start.kind for letter, start in self.starts.items()}
        for start in self.starts.values():
            of |= {letter: known[name].other for name, letter in start.stated.items() if known[name].other}
        of |= {leg.names: known[leg.path[-1]].other for leg in self.legs if leg.names}
        for letter in self.same or ():
            if letter.isalpha() and letter not in of:
                of[letter] = known[self.legs[0].path[-1]].other
        return of

    def works(self, leaves: Sequence[Leaf], number: int) -> list[tuple[str, str]]:
        """Return every sum with its result, in order."""
        done: dict[str, str] = {}
        worked = []
        for place, template in enumerate(self._templates(leaves)):
            expression = template.format(*leaves, n=number, **done)
            done[f"r{place}"] = calculate(expression)
            worked.append((expression, done[f"r{place}"]))
        return worked

    def answer(self, ends: Sequence[str], leaves: Sequence[Leaf], number: int, names: Mapping[str, str]) -> str:
        """Return the answer.

        Args:
            ends: for each leg the entity that has its leaf.
            leaves: for each leg what it leads to.
            number: the number that the question states; 0 if it states none.
            names: slot -> the entity in it.
        """
        if self.asks == "leaf":
            return str(leaves[0])
        if self.same:
            first, second = (names[letter] if letter.isalpha() else leaves[int(letter)] for letter in self.same)
            return "yes" if first == second else "no"
        result = self.works(leaves, number)[-1][1]
        if self.asks in ("least", "most"):
            return ends[0] if result == "yes" else ends[1]
        return result

    def _templates(self, leaves: Sequence[Leaf]) -> tuple[str, ...]:
        if self.asks == "difference":  # the calculator's user subtracts the smaller number
            return ("{0}-{1}",) if int(leaves[0]) > int(leaves[1]) else ("{1}-{0}",)
        compared = {"least": ("{0}<{1}",), "most": ("{0}>{1}",)}
        return compared.get(self.asks, self.sums)
