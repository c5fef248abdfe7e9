"""What of a dialogue was needless: calls made before, calls whose result nothing came of, and words beyond a few."""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import pairwise

from rc1_lib.language.numerals import operands
from rc1_lib.memo import of_short_texts
from rc1_lib.scoring.transcript import CALC, Call, Transcript
from rc1_lib.text import tokenize

VERDICTS = frozenset({"yes", "no", "是", "否"})
BRIEF_WORDS, SPARE_WORDS = 10, 60
"""Words of a final message that are never too many, and how many more halve what its words are worth."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_COMMON = frozenset(
    "a an the and or but if so then than as of to in on at by for from with without is are was were be been has have "
    "had do does did it its he she they his her their this that these those which who not no yes".split()
)


def economy(dialogue: Transcript, worth: float = 1.0) -> float:
    """Mean of two shares of the calls, of `worth`: not made before in the same words; and also of some use."""
    if not dialogue.calls:
        return worth
    fresh = first_times(dialogue)
    useful = [first and use for first, use in zip(fresh, used(dialogue), strict=True)]
    return worth * (sum(fresh) + sum(useful)) / (2 * len(dialogue.calls))


def brevity(words: int) -> float:
    """1 up to a brief message's words, half at as many more as can be spared."""
    return SPARE_WORDS / (SPARE_WORDS + max(0, words - BRIEF_WORDS))


def is_verdict(call: Call) -> bool:
    """Whether the call is a comparison that came to yes or no."""
    return call.name == CALC and call.result.strip().lower() in VERDICTS


def first_times(dialogue: Transcript) -> list[bool]:
    """For each call whether it was not made before in the same words."""
    seen: set[tuple[str, str]] = set()
    fresh = []
    for call in dialogue.calls:
        made = (call.name, call.arguments)
        fresh.append(made not in seen)
        seen.add(made)
    return fresh


def used(dialogue: Transcript) -> list[bool]:
    """For each call whether something new in its result stands in a later call or in the final message.

    New is what neither the user nor the call itself had said. A comparison's yes or no counts as used.
    """
    told = {piece for role, text in dialogue.spoken if role == "user" for piece in pieces(text)}
    later = set(pieces(dialogue.final))
    beside: list[Call] = []
    found: list[bool] = []
    for call in reversed(dialogue.calls):
        if beside and call.place < beside[0].place:
            # Calls of one message are made side by side: none of them can use another's result.
            later |= {piece for other in beside for piece in pieces(other.said)}
            beside = []
        beside.append(call)
        found.append(is_verdict(call) or not later.isdisjoint(_news(call, told)))
    return found[::-1]


def _news(call: Call, told: set[str]) -> Set[str]:
    """What the result brought; a sum's number is news even where the user happens to name the same."""
    brought = pieces(call.result)
    return brought if call.name == CALC else brought - told - pieces(call.said)


@of_short_texts(8192)  # a byte of a text makes up to 25 of pieces
def pieces(text: str) -> frozenset[str]:
    """What a text can be recognised by: its numbers, its words but the commonest, and pairs of Han characters."""
    words = tokenize(text)
    plain = {word for word in words if not word.isdigit() and not _HAN.match(word)} - _COMMON
    pairs = {left + right for left, right in pairwise(words) if _HAN.match(left) and _HAN.match(right)}
    return frozenset(plain | pairs | set(operands(text)))
