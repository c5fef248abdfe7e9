"""Quantities in a text, written in figures or in words, for the question whether a text tells a withheld number."""

from __future__ import annotations

import re
from contextlib import suppress

from rc1_lib.answer_rules.golds import decimal
from rc1_lib.answer_rules.number_words import number_in_words

FIGURE = r"\d+(?:,\d{3})*(?:\.\d+)?"
_FIGURE = re.compile(FIGURE)
_WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_MEANING: dict[str, tuple[int, ...]] = {
    **{word: (number,) for number, word in enumerate(_ONES)},
    **{word: (10 * number,) for number, word in enumerate(_TENS, 2)},
    **{
        f"{tens}-{ones}": (10 * number + one,)
        for number, tens in enumerate(_TENS, 2)
        for one, ones in enumerate(_ONES[1:10], 1)
    },
    **dict.fromkeys("twice double doubled doubles doubling pair pairs couple half halves both twins".split(), (2,)),
    **dict.fromkeys("thrice triple tripled triples triplets third thirds".split(), (3,)),
    **dict.fromkeys("quadruple quadrupled fourth fourths quarter quarters".split(), (4,)),
    **dict.fromkeys("single once only-one".split(), (1,)),
    **{"dozen": (12,), "dozens": (12,), "score": (20,), "hundred": (100,), "thousand": (1000,), "million": (10**6,)},
    # A reader knows these without being told.
    **{"week": (7,), "weeks": (7,), "weekly": (7,), "day": (24,), "days": (24,), "daily": (24,), "hour": (60,)},
    **{"hours": (60,), "hourly": (60,), "minute": (60,), "minutes": (60,), "foot": (12,), "feet": (12,)},
    **{"year": (12, 52, 365), "years": (12, 52, 365), "yearly": (12, 52, 365), "annual": (12, 52, 365)},
    **{"month": (30,), "months": (30,), "monthly": (30,), "yard": (3,), "yards": (3,), "percent": (100,)},
}
"""Word -> the quantities that it may stand for."""


_LONGEST = 12
"""Words of a number that are read together."""


def plain(number: str) -> str:
    """Return a canonical spelling of a quantity: the same for `1,000.50` and `1000.5`."""
    whole, _, decimals = number.replace(",", "").partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole.lstrip('0') or '0'}.{decimals}" if decimals else whole.lstrip("0") or "0"


def figures(text: str) -> list[str]:
    """Return the quantities that stand in `text` in figures, in canonical spelling, in reading order."""
    return [plain(number) for number in _FIGURE.findall(text)]


def in_words(text: str) -> set[str]:
    """Return the quantities that English words of `text` may stand for, as figures.

    They may be single words ("twelve", "dozen", "twice") or several ("two hundred and five").
    """
    written = _WORD.findall(text.casefold())
    found = {str(number) for one in written for word in {one, *one.split("-")} for number in _MEANING.get(word, ())}
    words = [word for one in written for word in one.split("-")]
    for at in range(len(words)):
        if (read := number_in_words(words[at : at + _LONGEST], words[at - 1] if at else "")) and read[1] > 1:
            with suppress(ValueError):  # a third has no decimals
                found.add(plain(decimal(read[0])))
    return found


def as_quantity(value: str) -> str | None:
    """Return the quantity that a value such as `$1,200` consists of; None if it is something else."""
    match = _FIGURE.fullmatch(value.strip().lstrip("$€£"))
    return plain(match[0]) if match else None
