"""Find the number that a sentence states among all its numbers; docs/answers.md gives the order of the rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from rc1_lib.answer_rules.arithmetic import Part, Sum

Stated = Fraction | str
"""A sentence's value, or why it has none."""
SILENT, UNCLEAR = "no number", "unclear"

CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|total|altogether|in all|answer|result|final|finally|overall|sum|consequently|means|"
    r"conclusion|left)\b|=|所以|因此|共|总|總|答案|最后|最終|最终|剩|合计"
)
_BECAUSE = re.compile(
    r"\b(?:because|since|as|where|given that|which is|which are|i e)\b|因为|由于|因為|由於|,\s*(?:or so)\b"
)
_SO = re.compile(
    r"\b(?:so|therefore|thus|hence|which means|meaning|that is|that's|that makes|for a total of|consequently)\b|"
    r"所以|因此"
)
_SKIPPED = frozenset(
    "about exactly only just a an the total of approximately around roughly now then precisely simply equal to still "
    ": ≈ — clearly therefore thus , obviously altogether usd us".split()
)
_LEADS = frozenset(
    "is are was were be equals equal makes gives leaves yields totals namely total answer result altogether so "
    "therefore hence thus sum that's it's = means comes amounts adds sums get gets got cost costs".split()
)
_HAN_LEADS = re.compile(
    r"(?:所以|因此|一?共|总共|總共|共计|合计|总计|答案|等于|等於|就是|即|得到?|还?剩下?|[是為为了有赚要花])(?:是|有|为|了|约|大约|要)*$"
)
_AROUND = frozenset("in for after during within".split())
_LABELS = frozenset("day week month year step question problem part grade level case round".split())
_FIRST_AROUND = _AROUND | frozenset("with at on by over from of".split())
_BETWEEN_TWO = frozenset("of in out to per by and or with vs versus & , : ~ into over x — 到 至 比 and each".split())
_TOTAL = frozenset("total altogether overall".split())
_DOING = re.compile(r"[a-z]+ing|away|out")
_SMALL_WORDS = frozenset("a an the first last next another about each every these those".split())


def sums_in(parts: Sequence[Part]) -> list[Sum]:
    """Return the values among `parts`, in order."""
    return [part for part in parts if isinstance(part, Sum)]


def _sides(parts: Sequence[Part]) -> list[list[Part]]:
    """Split `parts` at `=`."""
    sides: list[list[Part]] = [[]]
    for part in parts:
        if part in ("=", "≈"):
            sides.append([])
        else:
            sides[-1].append(part)
    return sides


def stated_value(parts: Sequence[Part]) -> Stated:
    """Return a sentence's value: that of its last side of `=` with a number; bare numbers before must agree."""
    with_number = [side for side in _sides(parts) if sums_in(side)]
    if not with_number:
        return SILENT
    value = _resolved(with_number[-1])
    for side in with_number[:-1]:
        alone = side[0] if len(side) == 1 else None
        if isinstance(alone, Sum) and not alone.reckoned and alone.value != value:
            return UNCLEAR
    return value


def _resolved(parts: Sequence[Part]) -> Stated:
    """Return the one value that a sentence without `=` states."""
    sums = sums_in(parts)
    if not sums:
        return SILENT
    if len({found.value for found in sums}) == 1:
        return sums[0].value
    for cut, take_tail in ((_BECAUSE, False), (_SO, True)):
        if (rest := _side_of(parts, cut, take_tail)) is not None:
            return _resolved(rest)
    if _paired(parts):
        places = [place for place, part in enumerate(parts) if isinstance(part, Sum)]
        if not (_led(parts, places[-1]) or _summed_up(parts, places[-1])):
            return UNCLEAR
    return _result(parts)


def _side_of(parts: Sequence[Part], cut: re.Pattern[str], take_tail: bool) -> Sequence[Part] | None:
    """Return the parts before the first cause, or after the last conclusion, if they contain a number; else None."""
    text, starts = "", []
    for part in parts:
        starts.append(len(text))
        text += f"{part if isinstance(part, str) else '#'} "
    found = list(cut.finditer(text))
    if not found:
        return None
    mark = found[-1] if take_tail else found[0]
    at = mark.end() if take_tail else mark.start()
    side = [part for start, part in zip(starts, parts, strict=True) if (start >= at if take_tail else start < at)]
    return side if sums_in(side) and len(side) < len(parts) else None


def _paired(parts: Sequence[Part]) -> bool:
    """Whether two numbers surround one small word: `3 of 4`, `5 to 6`, `3, 4`."""
    return any(
        isinstance(first, Sum) and isinstance(second, Sum) and word in _BETWEEN_TWO and first.value != second.value
        for first, word, second in zip(parts, parts[1:], parts[2:], strict=False)
    )


def _result(parts: Sequence[Part]) -> Stated:
    """Choose the number that a verb or "in total" makes the result, else the only one not circumstantial."""
    places = [place for place, part in enumerate(parts) if isinstance(part, Sum)]
    around = {place for place in places if _is_around(parts, place, first=place == places[0])}
    led = [place for place in places if _led(parts, place)]
    if (
        len({_at(parts, place) for place in led}) > 1
        and [place for place in led if _concluded(parts, place)] != led[-1:]
    ):
        return UNCLEAR  # two statements ("there are 3 apples and there are 4 pears"), or two conclusions
    for place in reversed(places):
        later = [other for other in places if other > place and other not in around]
        if not later and (_led(parts, place) or _summed_up(parts, place)):
            return _at(parts, place)
    stated = [place for place in places if place not in around]
    if len({_at(parts, place) for place in stated}) == 1 and not _in_han(parts):
        return _at(parts, stated[0])
    return UNCLEAR


def _at(parts: Sequence[Part], place: int) -> Fraction:
    part = parts[place]
    assert isinstance(part, Sum)
    return part.value


def _in_han(parts: Sequence[Part]) -> bool:
    return any(isinstance(part, str) and part.isalpha() and not part.isascii() for part in parts)


def _led(parts: Sequence[Part], place: int) -> bool:
    """Whether the number at `place` directly follows a verb such as `is`."""
    before = place - 1
    while before >= 0 and parts[before] in _SKIPPED:
        if parts[before] in ("total", "altogether", "therefore", "thus"):
            return True
        before -= 1
    word = parts[before] if before >= 0 else ""
    return isinstance(word, str) and (word in _LEADS or _HAN_LEADS.search(word) is not None)


def _concluded(parts: Sequence[Part], place: int) -> bool:
    """Whether a word of conclusion is between the number at `place` and the previous one."""
    before = place - 1
    while before >= 0 and not isinstance(parts[before], Sum):
        before -= 1
    between = " ".join(part for part in parts[before + 1 : place] if isinstance(part, str))
    return CONCLUDES.search(between) is not None


def _summed_up(parts: Sequence[Part], place: int) -> bool:
    """Whether `in total` or the like follows the number at `place` within three words."""
    after: list[str] = []
    for part in parts[place + 1 : place + 6]:
        if isinstance(part, Sum):
            break
        after.append(part)
    return bool(_TOTAL & set(after)) or "in all" in " ".join(after)


def _is_around(parts: Sequence[Part], place: int, *, first: bool) -> bool:
    """Whether the number at `place` is a circumstance: `in 2 hours`."""
    before = place - 1
    while before >= 0 and (
        (word := parts[before]) in _SMALL_WORDS or (isinstance(word, str) and _DOING.fullmatch(word))
    ):
        before -= 1
    if before < 0:
        return False
    return (
        parts[before] in _AROUND
        or parts[before] in _LABELS
        or (first and before == 0 and parts[before] in _FIRST_AROUND)
    )
