"""Chooses a number of a story to withhold, so that only asking reveals it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rc1_lib.records import Slot
from rc1_lib.task_specs.wording import occurrences

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
# A separate number: not part of a word, date, fraction, ratio, time or range, and not a percentage.
_COUNT = re.compile(rf"(?<![\w$€£.,/:\-–%])({_NUMBER})(?![\d%/:\-–]|\w)\s+(.+)")
_MONEY = re.compile(rf"(?<![\w.,/\-–])(\$({_NUMBER}))(?![\d%/:\-–]|\w|\s+(?:bill|coin|note)|\.\d)")
_ANY_NUMBER = re.compile(_NUMBER)
_STARTS = re.compile(rf"(?<![\w$€£.,/:\-–%]){_NUMBER}")
_IN_EXPRESSION = re.compile(r"\d*\.?\d+")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
# After these words "some" does not read well ("the some apples"), or the number is a name ("day 3").
_NOT_AFTER = frozenset(
    "a an the his her their its my our your these those first last next each every per another all both".split()
)
_PHRASE = re.compile(r"(?:[A-Za-z][A-Za-z'’]*(?:\s+|(?=[^\w\s])|$)){1,4}")
_PLURAL = re.compile(r"[a-z]+s")
_ENDS_PHRASE = frozenset("and or to in on at from for by with is are was were as".split())
_PLURAL_LIKE = frozenset("people children men women feet inches mice geese fish sheep dozen pairs teeth".split())
_NOT_PLURAL = frozenset("as is was has his this its plus less times us across".split())


def number_slot(story: str, ask: str, expressions: Sequence[str]) -> Slot | None:
    """Return the first number of `story` that a calculation uses and that a vague word can replace, or None.

    The value occurs exactly once in `story` and not in `ask`. Counts ("48 clips") are preferred to prices ("$12").
    """
    used = {_plain(number) for text in expressions for number in _IN_EXPRESSION.findall(text)}
    in_story = [_plain(number) for number in _ANY_NUMBER.findall(story)]
    in_ask = {_plain(number) for number in _ANY_NUMBER.findall(ask)}
    for find in (_counts, _prices):
        for slot, number in find(story):
            quantity = _plain(number)
            # Another form of the same quantity ("$12.00", "12%") would reveal a withheld "12" too.
            stands_alone = occurrences(slot.value, story) == 1 == in_story.count(quantity) and quantity not in in_ask
            # Even inside another number (the 50 of $0.50), the same digits in the question would mislead.
            stands_alone = stands_alone and not occurrences(slot.value, ask)
            if stands_alone and quantity in used:
                return slot
    return None


def _plain(number: str) -> str:
    """Return a canonical spelling of a quantity: the same for `1,000.50` and `1000.5`."""
    whole, _, decimals = number.replace(",", "").partition(".")
    decimals = decimals.rstrip("0")
    return f"{whole.lstrip('0') or '0'}.{decimals}" if decimals else whole.lstrip("0") or "0"


def _counts(story: str) -> Iterator[tuple[Slot, str]]:
    for match in _STARTS.finditer(story):
        whole = _COUNT.match(story, match.start())
        if whole and (slot := _count_slot(story[: match.start()], whole[1], whole[2])):
            yield slot, whole[1]


def _count_slot(before: str, number: str, after: str) -> Slot | None:
    previous = (_WORD.findall(before) or [""])[-1].casefold()
    glued = before[-1:] == " " and before[-2:-1].isalpha()
    if glued and previous in _NOT_AFTER:
        return None
    phrase = _phrase(after)
    if phrase is None:
        return None
    starts = not before.strip() or before.rstrip()[-1] in ".?!"
    vague = "several" if phrase.startswith(("times", "more", "fewer")) else "some"
    return Slot("story", number, vague.capitalize() if starts else vague, f"how many {phrase}")


def _phrase(after: str) -> str | None:
    """Return the noun phrase after the number: `of her friends`, `red marbles`, `times`."""
    words = _PHRASE.match(after)
    parts = words[0].split() if words else []
    if parts[:1] == ["times"]:
        return "times"
    for count, word in enumerate(parts, start=1):
        if word in _PLURAL_LIKE or (len(word) > 3 and _PLURAL.fullmatch(word) and word not in _NOT_PLURAL):
            return " ".join(parts[:count])
        if word in _ENDS_PHRASE:
            return None
    return None


def _prices(story: str) -> Iterator[tuple[Slot, str]]:
    for match in _MONEY.finditer(story):
        before = story[: match.start()]
        previous = (_WORD.findall(before) or [""])[-1].casefold()
        if previous in _NOT_AFTER and previous not in {"each", "every"}:
            continue
        starts = not before.strip() or before.rstrip()[-1] in ".?!"
        vague = "Some money" if starts else "some money"
        phrase = f"{' '.join(before.split()[-3:])} {vague}" if not starts else vague
        yield Slot("story", match[1], vague, f"the exact amount where it says '{phrase}'"), match[2]
