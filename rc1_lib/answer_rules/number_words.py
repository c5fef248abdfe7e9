"""English number words: `seventy-two`, `one hundred and five`, `two dozen`, `three quarters`, `seven point two`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

_SMALL = {word: value for value, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen".split()
)}  # fmt: skip
_TENS = {
    word: 10 * value for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_TENS["fourty"] = 40
SCALES = {
    "hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "quadrillion": 10**15,
    "dozen": 12, "dozens": 12, "lakh": 10**5, "lakhs": 10**5, "crore": 10**7, "crores": 10**7,
    "millions": 10**6, "billions": 10**9, "thousands": 10**3, "hundreds": 10**2, "trillions": 10**12,
    "mln": 10**6, "mn": 10**6, "bn": 10**9, "bln": 10**9, "tn": 10**12, "k": 10**3,
}  # fmt: skip
"""Words after a number that multiply it."""
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4, "fifth": 5,
    "fifths": 5, "sixth": 6, "sixths": 6, "eighth": 8, "eighths": 8, "tenth": 10, "tenths": 10,
}  # fmt: skip
_FIRST = frozenset((*_SMALL, *_TENS, "a", "an", "half", "hundred", "thousand", "million", "billion", "dozen"))
NUMBER_WORDS = frozenset((*_SMALL, *_TENS, *SCALES, *_PARTS))
_ONE_AS_A_WORD = frozenset("no each every any this that the which another only last some".split())


def number_in_words(words: Sequence[str], before: str = "") -> tuple[Fraction, int] | None:
    """Read the number at the start of `words` and count its words; None if they do not start with one.

    Args:
        words: in lower case; a hyphenated number is split into its words.
        before: the word before them: `each one` and `no one` are not numbers.
    """
    if not words or words[0] not in _FIRST:
        return None
    if words[0] in ("a", "an"):
        # "a hundred", "a dozen", "a half", "a third"
        unit = words[1] if len(words) > 1 else ""
        if unit == "half" or (unit in ("third", "quarter", "fifth", "tenth") and words[2:3] == ["of"]):
            return Fraction(1, _PARTS[unit]), 2
        if unit not in ("hundred", "thousand", "million", "billion", "dozen"):
            return None
        value, used = _whole(["one", *words[1:]])
        return value, used
    if words[0] in ("hundred", "thousand", "million", "billion", "dozen"):
        return _whole(["one", *words])[0], max(1, _whole(["one", *words])[1] - 1)
    if words[0] == "half":
        return Fraction(1, 2), 1
    if words[0] == "one" and (before in _ONE_AS_A_WORD or words[1:2] in (["of"], ["another"], ["more"], ["who"])):
        return None
    value, used = _whole(words)
    rest = list(words[used:])
    if rest[:1] == ["point"]:
        decimals = ""
        while len(decimals) < len(rest) - 1 and _SMALL.get(rest[len(decimals) + 1], 10) < 10:
            decimals += str(_SMALL[rest[len(decimals) + 1]])
        if decimals:
            value, used = value + Fraction(int(decimals), 10 ** len(decimals)), used + 1 + len(decimals)
            if words[used : used + 1] and words[used] in SCALES:
                value, used = value * SCALES[words[used]], used + 1
    elif words[used - 1] in SCALES:
        pass  # "one million and a half": a half of one, or of a million?
    elif rest[:3] == ["and", "a", "half"]:
        value, used = value + Fraction(1, 2), used + 3
    elif rest[:1] == ["and"] and (part := _fraction(rest[1:])):
        value, used = value + part, used + 3
    elif used == 1 and (part := _fraction(list(words))):
        value, used = part, 2
    return value, used


def _fraction(words: Sequence[str]) -> Fraction | None:
    """Read `three quarters` or `a quarter`: a small number and a part."""
    count = _SMALL.get(words[0], int(words[0] == "a")) if words else 0
    if len(words) < 2 or words[1] not in _PARTS or not count:
        return None
    if words[1] == "third" and count != 1:
        return None  # "two third" is not a number
    return Fraction(count, _PARTS[words[1]])


def adds_a_part(words: Sequence[str]) -> bool:
    """Whether `words` begin with `and a half`, or with `and one quarter` or the like at their end or before a plural.

    `and a third of them` and `and a fifth friend` say something else.
    """
    if words[:1] != ["and"] or words[1:2] not in (["a"], ["one"]) or len(words) < 3 or words[2] not in _PARTS:
        return False
    return words[2] == "half" or len(words) == 3 or words[3].endswith("s")


def _whole(words: Sequence[str]) -> tuple[Fraction, int]:
    total, group, used = 0, 0, 0
    lowest, ceiling = 10**18, 10**18  # what may still be added to the group, and the scale that may still follow
    for place, word in enumerate(words):
        if word in _SMALL and _SMALL[word] < lowest and (group % 10 == 0 or not group):
            group, lowest, used = group + _SMALL[word], 0, place + 1
        elif word in _TENS and lowest > 10:
            group, lowest, used = group + _TENS[word], 10, place + 1
        elif word == "hundred" and 0 < group < 100:
            group, lowest, used = group * 100, 100, place + 1
        elif word in ("dozen", "dozens") and group and not total:
            return Fraction(group * 12), place + 1
        elif word in SCALES and word != "hundred" and group and SCALES[word] < ceiling:
            total, group, ceiling, lowest, used = total + group * SCALES[word], 0, SCALES[word], 1000, place + 1
        elif word == "and" and used == place and place and words[place - 1] in ("hundred", "thousand", "million"):
            following = words[place + 1] if place + 1 < len(words) else ""
            if following not in _SMALL and following not in _TENS:
                break
        else:
            break
    return Fraction(total + group), used
