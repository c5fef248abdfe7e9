"""Numbers: find the one definite value of a text, however it is written (docs/answers.md has the definition).

A text is converted to plain characters, cut into sentences, and each sentence is read as numbers, signs and words. A
sentence has no value if it hedges, denies, compares or sets a condition, or has several numbers and no clear result.
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
    """Whether `given` states one definite number that equals `gold`; aliases are ignored."""
    wanted = number_in(gold)
    return wanted is not None and number_in(given) == wanted


def number_in(text: str) -> Fraction | None:
    """Return the one definite number that `text` states, exactly; None if it states none, or more than one."""
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
    """Return the last number of a message without a mark, as written: the answer to a word problem.

    GSM8K's own evaluation does the same. If the last sentence with a number hedges, the whole sentence is returned; if
    a later sentence takes it back, that one too.
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
    """A sentence, its value, and whether it states only that: a number with at most three words."""

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
    """Combine the sentences' values: one shared by all, or that of a bare first sentence, or of a concluding last."""
    spoken = [sentence for sentence in sentences if sentence.value != SILENT]
    if not spoken:
        return None
    first, last = spoken[0], spoken[-1]
    if isinstance(first.value, Fraction) and {sentence.value for sentence in spoken} == {first.value}:
        return None if any(_TAKES_BACK.match(sentence.text) for sentence in sentences[1:]) else first.value
    if isinstance(first.value, Fraction) and first.bare:
        disagreed = any(sentence.bare and sentence.value != first.value for sentence in spoken)
        retracted = any(_RETRACTS.search(sentence.text) for sentence in sentences[1:])
        return None if disagreed or retracted else first.value
    if not isinstance(last.value, Fraction) or not CONCLUDES.search(last.text):
        return None
    doubted = any(sentence.value == UNCLEAR and is_doubtful(sentence.text) for sentence in spoken)
    answered = any(sentence.value != last.value and _ANSWER.search(sentence.text) for sentence in spoken)
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
