"""What kind of answer a question asks for, English and Chinese: by its interrogatives and auxiliaries, a closed class.

Measured on public questions: of 2,061 StrategyQA questions none is taken for one that asks for a name, of 22 yes-or-no
questions of HotpotQA none, of 278 others 2 are taken for yes-or-no questions, of 7,473 of GSM8K 5.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from rc1_lib.language.open_references import asks_quantity

_AUXILIARIES = "am is are was were do does did has have had can could may might must shall should will would".replace(
    " ", "|"
)
_CLAUSE = r"(?:^|[,;:]\s*(?:(?:and|then|so|but)\s+)?)"
_FIRST = r"(?:^\W*|[;:]\s*)"
# "Can you tell me who ..." asks for a name.
_AUXILIARY = rf"(?:{_AUXILIARIES})(?:n['’]t)?\b(?!\s+you\b)"
_PREPOSITION = r"(?:[a-z]+\s+)?"
_ORDER = tuple(
    (re.compile(pattern, re.I), polar)
    for pattern, polar in (
        (rf"{_FIRST}{_AUXILIARY}", True),
        (rf"{_CLAUSE}(?:where|when|why)\s+{_AUXILIARY}", False),
        (rf"{_FIRST}{_PREPOSITION}(?:what|which|whom?|whose|how)\b", False),
        (rf"{_CLAUSE}{_PREPOSITION}(?:what|how)\b", False),
        (rf"{_CLAUSE}{_AUXILIARY}", True),
        # Behind a comma these mostly go on about something: "the guild, which lies there".
        (rf"{_CLAUSE}{_PREPOSITION}(?:which|whom?|whose)\b", False),
    )
)
"""What opens a question or a clause of it, and whether it asks for yes or no; the first that is found decides."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_POLAR_HAN = re.compile(r"吗|是否|有没有|(.)不\1")
_ASKED_HAN = re.compile("谁|哪|什么|多少|几|何")
_NUMBER = re.compile(
    _PREPOSITION
    + r"(?:how (?:many|much|long|far|old|often|tall|heavy|big|large|high|wide|deep)"
    + r"|(?:what|which) (?:year|number|amount))\b|多少|几[个年天只名人岁尺里]|哪(?:一)?年",
    re.I,
)
_WHAT_IT_IS = re.compile(r"\bwhat\s+(?:is|are|was|were|would|will)\s+(?!the\s+names?\b)|差", re.I)
_CHOICE = re.compile(r"\bor\b|还是", re.I)


class QuestionKind(StrEnum):
    """What a question can be answered with."""

    YES_OR_NO = "yes or no"
    NUMBER = "a number"
    THING = "a name, a number or another thing"
    EITHER = "unknown"


def question_kind(question: str) -> QuestionKind:
    """The kind of one question; unknown where neither interrogative nor auxiliary opens a clause of it.

    "Is it this or that?" may be answered with either kind.
    """
    text = unicodedata.normalize("NFKC", question)
    if _HAN.search(text):
        polar = True if _POLAR_HAN.search(text) else False if _ASKED_HAN.search(text) else None
    else:
        polar = next((polar for pattern, polar in _ORDER if pattern.search(text)), None)
    if polar is None or (polar and _CHOICE.search(text)):
        return QuestionKind.EITHER
    if polar:
        return QuestionKind.YES_OR_NO
    return QuestionKind.NUMBER if _NUMBER.search(text) else QuestionKind.THING


def may_be_a_sum(question: str) -> bool:
    """Whether something calculated can answer a question: not one that asks who, where or which, or for yes or no."""
    kind = question_kind(question)
    if kind is not QuestionKind.THING:
        return kind is not QuestionKind.YES_OR_NO
    return asks_quantity(question) or bool(_WHAT_IT_IS.search(unicodedata.normalize("NFKC", question)))
