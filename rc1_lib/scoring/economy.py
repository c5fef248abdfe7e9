"""Which calls of a dialogue were needless: those made before, and those whose result nothing came of."""

from __future__ import annotations

import re
from itertools import pairwise

from rc1_lib.language.numerals import operands
from rc1_lib.scoring.transcript import Call, Transcript
from rc1_lib.text import tokenize

VERDICTS = frozenset({"yes", "no", "是", "否"})
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_COMMON = frozenset(
    "a an the and or but if so then than as of to in on at by for from with without is are was were be been has have "
    "had do does did it its he she they his her their this that these those which who not no yes".split()
)


def is_verdict(call: Call) -> bool:
    """Whether the call is a comparison that came to yes or no."""
    return call.name == "calc" and call.result.strip().lower() in VERDICTS


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
    later = pieces(dialogue.final)
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


def _news(call: Call, told: set[str]) -> set[str]:
    """What the result brought; a sum's number is news even where the user happens to name the same."""
    brought = pieces(call.result)
    return brought if call.name == "calc" else brought - told - pieces(call.said)


def pieces(text: str) -> set[str]:
    """What a text can be recognised by: its numbers, its words but the commonest, and pairs of Han characters."""
    words = tokenize(text)
    plain = {word for word in words if not word.isdigit() and not _HAN.match(word)} - _COMMON
    pairs = {left + right for left, right in pairwise(words) if _HAN.match(left) and _HAN.match(right)}
    return plain | pairs | set(operands(text))
