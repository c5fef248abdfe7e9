"""Which of its numbers a chain of sums depends on: `(12 - 12) * 30` takes two numbers and depends on neither.

Another is put in a number's place and the chain is reckoned again; what then comes to the same does not depend on it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

from rc1_lib.calculator import CalculatorError, Number, evaluate
from rc1_lib.language.numerals import FIGURE, operands

_FIGURE = re.compile(FIGURE)
_COMPARES = re.compile("[<>=!]=?")
_OPEN_TO_DOUBT = re.compile(r"[(%]|//")
"""What a sum needs to depend on less than all of its numbers, where each stands in it once and none is zero."""
_ZERO = ""
_UP, _DOWN = 7, Fraction(1, 7)
"""What a number is multiplied by to become another: both ways, since a remainder or a whole quotient may stay."""
_STEP = 3

Link = tuple[str, Sequence[int | None]]
"""The text of a sum; of each of its figures, in reading order, the place in the chain of the sum that gave it."""
_Spot = tuple[int, int]


def depends_on(chain: Sequence[Link], told: Mapping[str, int]) -> frozenset[str]:
    """The numbers that no earlier sum gave without which the last one would come to something else.

    A number that is used more often than it was told is one number, changed wherever it stands; else each use is a
    number by itself. A comparison is taken as the difference of its sides: `a + b > a` depends on `b`. All of them
    where the chain holds what the calculator does not know.

    Args:
        chain: sums in order; each is used by a later one, but for the last.
        told: how often each number was told.
    """
    read = [operands(text) for text, _ in chain]
    own = {
        (place, at): read[place][at]
        for place, (_, given) in enumerate(chain)
        for at, source in enumerate(given)
        if source is None
    }
    numbers = frozenset(own.values())
    if not _may_cancel(chain, [number for found in read for number in found]):
        return numbers
    if any(_value(_with_figures(text, _figures(text))) is None for text, _ in chain):
        return numbers
    differences = [(_difference(text), given) for text, given in chain]
    as_it_is = _reckoned(differences, (), _UP)
    return frozenset(
        number
        for number, spots in _told_apart(own, told)
        if any(other not in {None, as_it_is} for other in (_reckoned(differences, spots, by) for by in (_UP, _DOWN)))
    )


def _may_cancel(chain: Sequence[Link], numbers: Sequence[str]) -> bool:
    """False, mostly, where every number and result is used once and nothing between them could come to zero."""
    results = [source for _, given in chain for source in given if source is not None]
    twice = len(set(numbers)) < len(numbers) or len(set(results)) < len(results)
    return twice or _ZERO in numbers or any(_OPEN_TO_DOUBT.search(text) for text, _ in chain)


def _told_apart(own: Mapping[_Spot, str], told: Mapping[str, int]) -> Iterator[tuple[str, Collection[_Spot]]]:
    for number, times in Counter(own.values()).items():
        spots = [spot for spot, other in own.items() if other == number]
        if times > told.get(number, 0):
            yield number, spots
        else:
            yield from ((number, [spot]) for spot in spots)


def _reckoned(chain: Sequence[Link], changed: Collection[_Spot], by: Fraction | int) -> Number | None:
    """What the last sum comes to, with some of its figures changed; None where the calculator refuses it."""
    values: list[Number] = []
    for place, (text, given) in enumerate(chain):
        figures = [
            # The sign of a result stands before the figure, if it was taken along.
            f"({abs(values[source])})"
            if source is not None
            else f"({_another(figure, by)})"
            if (place, at) in changed
            else figure
            for at, (figure, source) in enumerate(zip(_figures(text), given, strict=True))
        ]
        value = _value(_with_figures(text, figures))
        if value is None:
            return None
        values.append(value)
    return values[-1]


def _another(figure: str, by: Fraction | int) -> Number:
    """Another number in its place, a whole one for a whole one: `n % 1` comes to nothing for all of those."""
    number = Fraction(figure)
    return number * by + _STEP if number.denominator > 1 else math.floor(number * by) + _STEP


def _figures(text: str) -> list[str]:
    return [figure.replace(",", "") for figure in _FIGURE.findall(text)]


def _with_figures(text: str, figures: Sequence[str]) -> str:
    waiting = iter(figures)
    return _FIGURE.sub(lambda _: next(waiting), text)


def _value(expression: str) -> Number | None:
    try:
        return evaluate(expression)
    except CalculatorError:
        return None


def _difference(text: str) -> str:
    left, *right = _COMPARES.split(text)
    return f"({left})-({right[0]})" if len(right) == 1 else text
