"""What the sums of a dialogue were made of, and whether that was told: which numbers the last one goes back to.

Who makes a sum only to have made one takes what is nearest: a number that nobody said, a number that the sum gives
back, one of many that bear on the question, or two that say something of the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rc1_lib.language.numerals import FIGURE, operands, spelling
from rc1_lib.scoring.transcript import Call
from rc1_lib.text import tokenize

UNITS = frozenset({"7", "12", "24", "52", "60", "100", "365", "1000"})
"""Numbers that nobody need say: how many of one unit make another, of time, dozens, percent and metres."""
_BY_TWO = re.compile(r"[*/]\s*2(?![0-9.])|(?<![0-9.])2\s*\*")
_SIGN = re.compile(rf"{FIGURE}|[-+*/()<>=]")
_BRACKETED = re.compile(rf"\(\s*({FIGURE})\s*\)")
_FIGURES = re.compile(FIGURE)
_ORDER = re.compile("[<>]=?")
_TRUE = frozenset({"yes", "是"})
_CLOSER = frozenset("*/")
_UNKNOWN = frozenset({""})
_NEUTRAL = frozenset({"", "1"})
"""What changes nothing when it is added, or multiplied by."""
_MOST_WORDS = 3
"""Tokens of a result that is a number, with a sign or a unit; more are a sentence."""
_MOST_DIGITS = 15
"""Longer numbers are compared as they are spelled: a float or a percentage of one is nobody's sum."""


@dataclass(frozen=True, slots=True)
class Worked:
    """A sum and those that it goes back to.

    Attributes:
        made_of: the numbers that no earlier sum gave, in the order in which they are met.
        by_two: whether anything is halved or doubled, which a text seldom says with a number.
        last: the numbers of the sum itself.
        pairs: each pair of those numbers that is added, subtracted or multiplied as it was told, with the sign.
        result: the number that it came to; nothing for a comparison.
    """

    made_of: tuple[str, ...]
    by_two: bool
    last: tuple[str, ...]
    pairs: frozenset[tuple[str, str, str]]
    result: str

    def is_told(self, told: Collection[str]) -> bool:
        """Whether every number that it is made of was said, or follows from what was said by a percentage."""
        known = UNITS | {"2"} if self.by_two else UNITS
        new = {number for number in self.made_of if number not in told and number not in known}
        return not new or new <= _shares(new, told)

    @property
    def is_idle(self) -> bool:
        """Whether it gives back one of its numbers as it was: `n`, `n + 0`, `1 * n`, or `n + m` and from that `- m`.

        That a sum happens to come to a number that it is made of (`6 - 3`) says nothing against it.
        """
        if self.result in self.last and (len(self.last) == 1 or not _NEUTRAL.isdisjoint(self.last)):
            return True
        return not self.made_of or (self.result in self.made_of and len(set(self.made_of)) < len(self.made_of))

    def mixes(self, counts: Mapping[str, frozenset[str]]) -> bool:
        """Whether it adds up what differs, as nights and pages, or multiplies pages by pages.

        Args:
            counts: what each number told counts; of one with several nouns, or with none, nothing is said.
        """
        for one, sign, other in self.pairs:
            if one == other:
                continue  # Which place of the text either is taken from, nobody knows.
            left, right = counts.get(one, _UNKNOWN), counts.get(other, _UNKNOWN)
            if len(left) == len(right) == 1 and "" not in left | right and (left == right) == (sign == "*"):
                return True
        return False


def came_to(call: Call) -> str | None:
    """The number that a sum came to; None for a comparison, and where a calculator says what it cannot do."""
    found = operands(call.result)
    return found[0] if len(found) == 1 and len(tokenize(call.result)) <= _MOST_WORDS else None


def worked(sums: Sequence[Call]) -> Worked:
    """The last of these sums, taken back to what it is made of: a number that an earlier one gave stands for that one.

    Args:
        sums: calls of the calculator, in order; at least one.
    """
    results = [came_to(call) for call in sums]
    made_of: list[str] = []
    pairs: set[tuple[str, str, str]] = set()
    met: set[int] = set()
    open_places = [len(sums) - 1]
    while open_places:
        place = open_places.pop()
        if place in met:
            continue
        met.add(place)
        # Of equal results the last one; sums of one message are made side by side, and none can use another's.
        given = {result: earlier for earlier, result in enumerate(results) if sums[earlier].place < sums[place].place}
        pairs.update(pair for pair in _pairs(sums[place].said) if given.keys().isdisjoint({pair[0], pair[2]}))
        for number in operands(sums[place].arguments):
            if number in given:
                open_places.append(given[number])
            else:
                made_of.append(number)
    by_two = any(_BY_TWO.search(sums[place].arguments) for place in met)
    return Worked(tuple(made_of), by_two, tuple(operands(sums[-1].arguments)), frozenset(pairs), results[-1] or "")


def chosen_side(sums: Sequence[Call]) -> frozenset[str]:
    """What the side is made of that the last of these sums speaks for, a comparison: its left one if it came to yes.

    Nothing where it compares more than two, or asks whether two are equal. That "yes" stands for the left side is how
    one compares what was asked about: whether this one is the longer, the older, the cheaper.
    """
    *before, last = sums
    left, *right = _ORDER.split(last.said)
    if len(right) != 1:
        return frozenset()
    side = left if last.result.strip().lower() in _TRUE else right[0]
    return frozenset(worked([*before, replace(last, arguments=side)]).made_of)


def _pairs(expression: str) -> Iterator[tuple[str, str, str]]:
    """The numbers of an expression that stand side by side with a sign between; in `2 * 3 + 4` only 2 and 3."""
    signs = [None, *_SIGN.findall(_BRACKETED.sub(r"\1", expression)), None]
    for place in range(2, len(signs) - 2):
        before, one, sign, other, behind = signs[place - 2 : place + 3]
        alone = sign == "*" or (sign in {"+", "-"} and _CLOSER.isdisjoint({before, behind}))
        if alone and _FIGURES.fullmatch(one) and _FIGURES.fullmatch(other):
            yield spelling(one), sign, spelling(other)


def _shares(numbers: Collection[str], told: Collection[str]) -> set[str]:
    """Those that are a percentage that was told, as a share, or what that leaves or adds: 0.2, 0.8, 1.2, 80, 120."""
    if "100" not in told:
        return set()
    percent = {_decimal(one) for one in told if _is_short(one)}
    shares = percent | {100 - one for one in percent} | {100 + one for one in percent}
    short = (number for number in numbers if _is_short(number))
    return {number for number in short if not shares.isdisjoint({_decimal(number), 100 * _decimal(number)})}


def _is_short(number: str) -> bool:
    # Some letters fold to others (the dotless i of "sıx"), so that not all that was read as a number is a figure.
    return len(number) <= _MOST_DIGITS and (not number or bool(_FIGURES.fullmatch(number)))


def _decimal(number: str) -> Decimal:
    return Decimal(number or 0)
