"""Chooses a number of a story to withhold, so that only asking reveals it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from fractions import Fraction

from rc1_lib.numbers.calculator import CalculatorError, evaluate, format_number
from rc1_lib.records import Slot
from rc1_lib.task_specs.quantities import FIGURE, figures, in_words, plain
from rc1_lib.task_specs.wording import occurrences

# A separate number: not part of a word, date, fraction, ratio, time or range, and not a percentage.
_COUNT = re.compile(rf"(?<![\w$€£.,/:\-–%])({FIGURE})(?![\d%/:\-–]|\w)\s+(.+)")
_MONEY = re.compile(rf"(?<![\w.,/\-–])(\$({FIGURE}))(?![\d%/:\-–]|\w|\s+(?:bill|coin|note)|\.\d)")
_STARTS = re.compile(rf"(?<![\w$€£.,/:\-–%]){FIGURE}")
_IN_EXPRESSION = re.compile(r"\d*\.?\d+")
_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*")
# After these words "some" does not read well ("the some apples"), or the number is a name ("day 3").
_NOT_AFTER = frozenset(
    "a an the his her their its my our your these those first last next each every per another all both".split()
)
_SENTENCE_END = re.compile(r"[.?!]\s+")
_PHRASE = re.compile(r"(?:[A-Za-z][A-Za-z'’]*(?:\s+|(?=[^\w\s])|$)){1,4}")
_PLURAL = re.compile(r"[a-z]+s")
_ENDS_PHRASE = frozenset("and or to in on at from for by with is are was were as".split())
_PLURAL_LIKE = frozenset("people children men women feet inches mice geese fish sheep dozen pairs teeth".split())
_NOT_PLURAL = frozenset("as is was has his this its plus less times us across".split())


def number_slot(story: str, ask: str, expressions: Sequence[str], answer: str) -> tuple[Slot | None, str]:
    """Choose the first number of `story` that the answer depends on and that nothing else tells.

    Nothing tells it: neither another figure nor a number word, nor the sums solved for it, as when the story states a
    later result. Counts ("48 clips") are preferred to prices ("$12").

    Args:
        story: the story, without the question.
        expressions: the sums of the solution, in order.

    Returns:
        The slot and an empty text, or None and the reason, which a source counts.
    """
    why = "nothing can be withheld: the story has no number that a word can replace"
    told = f"{story} {ask}"
    in_sums = {quantity for text in expressions for quantity in figures(text)}
    for find in (_counts, _prices):
        for slot, number in find(story):
            quantity = plain(number)
            left = figures(told)
            # Another form of the same quantity ("$12.00", "12%", the 50 of $0.50, "a dozen") would reveal it too.
            alone = left.count(quantity) == 1 == occurrences(slot.value, told) and quantity not in in_words(told)
            if not alone:
                why = "nothing can be withheld: each number is told a second time"
                continue
            left.remove(quantity)
            depending = _depending(quantity, expressions)
            if plain(answer) not in depending:
                why = "nothing can be withheld: the answer depends on no number that can be replaced"
            elif depending & {*left, *in_words(told)} or _follows(quantity, left, in_sums):
                why = "nothing can be withheld: what is left of the story determines each number"
            else:
                return slot, ""
    return None, why


def _depending(quantity: str, expressions: Sequence[str]) -> set[str]:
    """Return the results that change if the quantity does, by doing the sums with another one."""
    instead = {quantity: f"({2 * Fraction(quantity) + 1})"}
    changed: set[str] = set()
    for expression in expressions:
        redone = _IN_EXPRESSION.sub(lambda found: instead.get(plain(found[0]), found[0]), expression)
        try:
            before, after = evaluate(expression), evaluate(redone)
        except CalculatorError:
            return set()
        if before != after:
            result = plain(format_number(before))
            changed.add(result)
            instead[result] = f"({Fraction(after)})"
    return changed


def _follows(quantity: str, left: Sequence[str], in_sums: Set[str]) -> bool:
    """Return whether one sum of two other numbers gives the quantity, one of which the solution does not need.

    A number that the solution does not need may say the same as those that it does ("of 20 marbles 12 are red and 8
    blue").
    """
    wanted = Fraction(quantity)
    for spare in (number for number in left if number not in in_sums):
        for other in left:
            a, b = Fraction(spare), Fraction(other)
            if other != spare and (wanted in (a + b, abs(a - b), a * b) or wanted * b == a or wanted * a == b):
                return True
    return False


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
        sentence = _SENTENCE_END.split(before)[-1]
        phrase = f"{' '.join(sentence.split()[-3:])} {vague}" if not starts else vague
        yield Slot("story", match[1], vague, f"the exact amount where it says '{phrase}'"), match[2]
