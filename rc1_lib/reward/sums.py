"""What the sums of a dialogue were made of, and whether that was told: which numbers the last one goes back to.

Who makes a sum only to have made one takes what is nearest: a number that nobody said, a number that the sum gives
back, one of many that bear on the question, or two that say something of the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rc1_lib.language.numerals import FIGURE, operands, plain, spelling
from rc1_lib.reward.dependence import depends_on
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
        made_of: the numbers that no earlier sum gave, in the order in which they stand.
        bearing: those of them on which what it comes to depends.
        by_two: whether anything is halved or doubled, which a text seldom says with a number.
        last: the numbers of the sum itself.
        pairs: each pair of those numbers that is added, subtracted or multiplied as it was told, with the sign.
        result: the number that it came to; nothing for a comparison.
    """

    made_of: tuple[str, ...]
    bearing: frozenset[str]
    by_two: bool
    last: tuple[str, ...]
    pairs: frozenset[tuple[str, str, str]]
    result: str

    def is_told(self, told: Collection[str]) -> bool:
        """Whether every number that it is made of was said, or follows from what was said by a percentage."""
        known = UNITS | {"2"} if self.by_two else UNITS
        new = {number for number in self.made_of if number not in told and number not in known}
        return not new or ("100" in told and new <= _shares(new, told))

    @property
    def is_idle(self) -> bool:
        """Whether it gives back one of its numbers as it was: `n`, `n + 0`, `1 * n`, or `n + m` and from that `- m`.

        So does one that depends on no number, or on that alone which it comes to. That a sum happens to come to a
        number that it is made of (`6 - 3`) says nothing against it.
        """
        if self.result in self.last and (len(self.last) == 1 or not _NEUTRAL.isdisjoint(self.last)):
            return True
        again = len(set(self.made_of)) < len(self.made_of)
        return self.bearing <= {self.result} or (again and self.result in self.made_of)

    def takes(self, wanted: Collection[str], told: Collection[str]) -> float:
        """The share of these numbers on which it depends; a percentage that was told may be taken as a share.

        Args:
            wanted: numbers that bear on the question; 1 where there are none.
            told: all that was told.
        """
        of_its_own = self.bearing.difference(told) if "100" in told else frozenset[str]()
        # Of 100 percent, which every percentage tells, 1 and 2 would be shares too.
        percentages = set(wanted).intersection(told) - self.bearing - {"100"}
        as_shares = {one for one in percentages if _shares(of_its_own, {one})}
        return len(self.bearing.intersection(wanted) | as_shares) / len(wanted) if wanted else 1.0

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


def worked(sums: Sequence[Call], told: Mapping[str, int]) -> Worked:
    """The last of these sums, taken back to what it is made of: a number that an earlier one gave stands for that one.

    Args:
        sums: calls of the calculator, in order; at least one.
        told: how often each number was told.
    """
    texts = [plain(call.said) for call in sums]
    results = [came_to(call) for call in sums]
    sources = list(_sources(sums, texts, results, told))
    met: set[int] = set()
    open_places = [len(sums) - 1]
    while open_places:
        place = open_places.pop()
        if place not in met:
            met.add(place)
            open_places += [source for source in sources[place] if source is not None]
    places = sorted(met)
    ranks = {place: rank for rank, place in enumerate(places)}
    chain = [(texts[place], [None if one is None else ranks[one] for one in sources[place]]) for place in places]
    made_of = [
        number
        for place in places
        for number, source in zip(operands(texts[place]), sources[place], strict=True)
        if source is None
    ]
    given = {results[source] for place in places for source in sources[place] if source is not None}
    pairs = {pair for place in places for pair in _pairs(texts[place]) if given.isdisjoint({pair[0], pair[2]})}
    return Worked(
        made_of=tuple(made_of),
        bearing=depends_on(chain, told),
        by_two=any(_BY_TWO.search(texts[place]) for place in places),
        last=tuple(operands(texts[-1])),
        pairs=frozenset(pairs),
        result=results[-1] or "",
    )


def _sources(
    sums: Sequence[Call], texts: Sequence[str], results: Sequence[str | None], told: Mapping[str, int]
) -> Iterator[list[int | None]]:
    """Of each number of each sum the place of the sum that gave it: of equal results the last; None for one of its own.

    A result that was used already stands for a number that was told, if there is one. Sums of one message are made
    side by side, and none can use another's.
    """
    taken: set[int] = set()
    for call, text in zip(sums, texts, strict=True):
        given = {result: place for place, result in enumerate(results) if sums[place].place < call.place}
        found: list[int | None] = []
        for number in operands(text):
            source = given.get(number)
            found.append(None if source in taken and number in told else source)
            if source is not None:
                taken.add(source)
        yield found


def chosen_side(sums: Sequence[Call], told: Mapping[str, int]) -> frozenset[str]:
    """What the side is made of that the last of these sums speaks for, a comparison: its left one if it came to yes.

    Nothing where it compares more than two, or asks whether two are equal. That "yes" stands for the left side is how
    one compares what was asked about: whether this one is the longer, the older, the cheaper.
    """
    *before, last = sums
    left, *right = _ORDER.split(last.said)
    if len(right) != 1:
        return frozenset()
    side = left if last.result.strip().lower() in _TRUE else right[0]
    return worked([*before, replace(last, arguments=side)], told).bearing


def _pairs(expression: str) -> Iterator[tuple[str, str, str]]:
    """The numbers of an expression that stand side by side with a sign between; in `2 * 3 + 4` only 2 and 3."""
    signs = [None, *_SIGN.findall(_BRACKETED.sub(r"\1", expression)), None]
    for place in range(2, len(signs) - 2):
        before, one, sign, other, behind = signs[place - 2 : place + 3]
        alone = sign == "*" or (sign in {"+", "-"} and _CLOSER.isdisjoint({before, behind}))
        if alone and _FIGURES.fullmatch(one) and _FIGURES.fullmatch(other):
            yield spelling(one), sign, spelling(other)


def _shares(numbers: Collection[str], percentages: Collection[str]) -> set[str]:
    """Those that are one of these percentages as a share, or what that leaves or adds: 0.2, 0.8, 1.2, 80, 120."""
    percent = {_decimal(one) for one in percentages if _is_short(one)}
    shares = percent | {100 - one for one in percent} | {100 + one for one in percent}
    short = (number for number in numbers if _is_short(number))
    return {number for number in short if not shares.isdisjoint({_decimal(number), 100 * _decimal(number)})}


def _is_short(number: str) -> bool:
    # Some letters fold to others (the dotless i of "sıx"), so that not all that was read as a number is a figure.
    return len(number) <= _MOST_DIGITS and (not number or bool(_FIGURES.fullmatch(number)))


def _decimal(number: str) -> Decimal:
    return Decimal(number or 0)
