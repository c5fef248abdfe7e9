"""Numbers: one definite value, in whatever dress, or nothing (docs/answers.md has the definition and the table).

A text is made plain, cut into sentences, and each sentence read as numbers, signs and words. A sentence that hedges,
denies, compares or sets a condition has no value; nor has one with several numbers of which none is clearly its result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from rc1_lib.answer_rules.arithmetic import reckoned
from rc1_lib.answer_rules.chinese_numerals import UnclearNumeral, in_digits
from rc1_lib.answer_rules.doubts import is_doubtful
from rc1_lib.answer_rules.plain_text import plain_text
from rc1_lib.answer_rules.rule import MAX_LENGTH
from rc1_lib.answer_rules.statement import CONCLUDES, SILENT, UNCLEAR, Stated, stated_value, sums_in
from rc1_lib.answer_rules.tokens import Unreadable, tokens_of

_PLAIN = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?")
_LIST_OF_ONE = re.compile(r"^\(?1[.)]\s+(?=[^\s\d]*\s?-?[$.]?\d)")
_SENTENCES = re.compile(r"[\n;!]+|(?<!\.)\.(?=\s|$)(?!\s[a-z]*\.)|\?(?=\s)")
_QUESTION = re.compile(r"^[^?]*[a-z\u4e00-\u9fff][^?]*\?\s*(?=[^?]*\d[^?]*$)")
_ASSIGNED = re.compile(r"(?<![a-z])([a-z])\s?[=≈]")
_RETRACTS = re.compile(
    r"\b(?:or|no|not|nor|wait|actually|maybe|perhaps|possibly|but|however|instead|rather|alternatively|otherwise|if|unless|"
    r"wrong|mistake|sorry|either|correction|oops|hmm|also|should|answer)\b|n't\b|[不没沒或错錯但]|也许|可能|如果|更正|应该|等一下|答案"
)
_TAKES_BACK = re.compile(
    r"(?:or|no|not|wait|maybe|perhaps|wrong|just kidding|"
    r"(?:but )?(?:that|this|it)(?: is|'s) (?:wrong|incorrect|false))\b|不|错|也许|可能"
)
_AS_WRITTEN = re.compile(r"(?:(?<![\w\d)])[-−–]\s?)?[$€£¥]?\s?-?\d[\d,.'_]*(?:(?<=\d)|(?<=[\d][.,]))(?:/\d+)?%?")
_ANSWER = re.compile(r"\b(?:final )?(?:answer|result)\b|\bfinal\b|答案")


def same_number(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` says one definite number, and it is that of `gold`; aliases add nothing."""
    wanted = number_in(gold)
    return wanted is not None and number_in(given) == wanted


def number_in(text: str) -> Fraction | None:
    """The one definite number that `text` states, exactly; None if it states none, or more than one."""
    if _PLAIN.fullmatch(text := text.strip()) and text.isascii():
        return Fraction(text)
    if not text or len(text) > MAX_LENGTH:
        return None
    plain = plain_text(text)
    if plain is None:
        return None
    try:
        plain = _LIST_OF_ONE.sub("", _QUESTION.sub("", plain.replace("i.e.", "that is")))
        return _agreed(_sentences(in_digits(plain)))
    except UnclearNumeral:
        return None


def last_number(message: str) -> str:
    """The answer to a word problem in a message without a mark: its last number, as written.

    GSM8K's own evaluation reads so. Where the last sentence with a number hedges, the whole sentence is taken; where a
    later one takes it back, that too.
    """
    parts = [part.strip() for part in re.split(r"\n+|(?<=[.!?。！？])(?=\s|$)|(?<=[。！？])", message)]
    at = max((place for place, part in enumerate(parts) if re.search(r"\d", part)), default=None)
    if at is None:
        return message.strip().rpartition("\n")[2].strip()
    sentence = parts[at]
    if any(_TAKES_BACK.match(plain_text(part) or "") for part in parts[at + 1 :]):
        return " ".join(parts[at:])
    if (plain := plain_text(sentence)) is None or is_doubtful(plain):
        return sentence
    if number_in(sentence) is not None:
        return sentence
    *_, last = _AS_WRITTEN.finditer(sentence)
    return last[0].strip()


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence, what it says, and whether it says nothing else: a number with a word or three."""

    text: str
    value: Stated
    bare: bool = False


def _sentences(text: str) -> list[_Sentence]:
    read, starts = [], 0
    for mark in (*_SENTENCES.finditer(text), None):
        sentence = text[starts : mark.start() if mark else len(text)].strip()
        if sentence:
            read.append(_Sentence(sentence, UNCLEAR) if mark and mark[0] == "?" else _read(sentence))
        starts = mark.end() if mark else len(text)
    return read


def _agreed(sentences: Sequence[_Sentence]) -> Fraction | None:
    """What the sentences say together: the same, or what the first says by itself, or what the last concludes."""
    spoken = [one for one in sentences if one.value != SILENT]
    if not spoken:
        return None
    first, last = spoken[0], spoken[-1]
    if isinstance(first.value, Fraction) and {one.value for one in spoken} == {first.value}:
        return None if any(_TAKES_BACK.match(one.text) for one in sentences[1:]) else first.value
    if isinstance(first.value, Fraction) and first.bare:
        disagreed = any(one.bare and one.value != first.value for one in spoken)
        retracted = any(_RETRACTS.search(one.text) for one in sentences[1:])
        return None if disagreed or retracted else first.value
    if not isinstance(last.value, Fraction) or not CONCLUDES.search(last.text):
        return None
    doubted = any(one.value == UNCLEAR and is_doubtful(one.text) for one in spoken)
    answered = any(one.value != last.value and _ANSWER.search(one.text) for one in spoken)
    return None if doubted or answered else last.value


def _read(sentence: str) -> _Sentence:
    if not re.search(r"[\da-z]", sentence):
        return _Sentence(sentence, SILENT)
    if is_doubtful(sentence) or len(_ASSIGNED.findall(sentence)) > 1 or len(_ANSWER.findall(sentence)) > 1:
        return _Sentence(sentence, UNCLEAR)
    try:
        parts = reckoned(tokens_of(sentence))
        value = stated_value(parts)
    except Unreadable:
        return _Sentence(sentence, UNCLEAR)
    words = [part for part in parts if isinstance(part, str) and part.isalpha()]
    return _Sentence(sentence, value, isinstance(value, Fraction) and len(words) <= 3 and len(sums_in(parts)) == 1)
