"""Splits plain text into numbers, signs and words, for reading numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction

from rc1_lib.answer_rules.number_words import SCALES, adds_a_part, number_in_words
from rc1_lib.answer_rules.plain_text import NARROW

Token = Fraction | str
"""A number, or a word or sign in lower case."""


class Percentage(Fraction):
    """A number with a per cent sign: 20 for `20%`, though a product with it (`50 * 20%`) may mean a hundredth of it."""

    __slots__ = ()


class Unreadable(ValueError):
    """The text contains something that is not a single number: `1.2.3`, `12a`, `2:30`, `3,4`."""


_UNITS = frozenset((
    "g kg mg lb lbs oz t l ml cl dl gal m km cm mm ft in inch yd mi s sec secs min mins h hr hrs hour hours mph "
    "kmh kph w kw "
    "kwh v hz gb mb tb kb usd eur gbp cny rmb hkd pts pcs pc pt yr yrs year years day days clips c f cal kcal sq cu p"
).split())  # fmt: skip
"""Units that may follow digits without a space."""
_CURRENCIES = frozenset("usd eur gbp cny rmb hkd us hk aud cad nt rs inr".split())
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_TOKEN = re.compile(
    rf"(?P<digits>(?<![\d.,/])[1-9]\d{{0,2}}(?:[ {NARROW}]\d{{3}})+(?:\.\d+)?(?![\d.,'_/]*\d)|"
    rf"\d+(?:[.,'_{NARROW}]+\d+)*(?:e[-+]?\d{{1,4}}(?![a-z\d]))?|(?<![\d.])\.\d+(?![.,]?\d))|"
    r"(?P<word>[a-z]+(?:'[a-z]+)?|[^\W\d_a-z]+)|"
    r"(?P<sign>\.{2,}|[-+*/^()=≈≶—%~:;,.?!&$])|(?P<other>[^\s])"
)
_NOT_READ = re.compile(r"[^\W\d_a-z\u00c0-\u024f\u0370-\u03ff\u3007\u3400-\u9fff]")
"""Letters of scripts other than Latin, Greek (variables) and Han: RC1 cannot tell what they say about a number."""
_SIGNED = re.compile(r"\$?[\d.]")
_HYPHEN = re.compile(r"(?<=[a-z\d])-(?=[a-z])|(?<=[a-z])/(?=[a-z])")
_MONEY = re.compile(r"(\$\s?[\d.,]*\d)\s?(mm?|b|k)\b")
_MIXED = re.compile(r"(?<=\d) and (?=\d+\s?/\s?\d)")
_TIMES = re.compile(r"(?<!\b0)(?<=[\d)])\s*x\s*(?=[\d($.-])")
_GREAT = re.compile(r"\b(thousand|million|billion),\s(?=[a-z])")
_STATES = frozenset(("=", "≈", "so", "therefore", "is", "are", "equals", "makes", "total"))
_MONEY_SCALES = {"m": " million", "mm": " million", "b": " billion", "k": " thousand"}


def tokens_of(sentence: str) -> list[Token]:
    """Return the numbers, words and signs of `sentence`; number words and multipliers are part of a number.

    Args:
        sentence: from `plain_text`, with Chinese numerals as digits.

    Raises:
        Unreadable: when digits are part of something that is not a single number.
    """
    if "$" in sentence:
        sentence = _MONEY.sub(lambda money: f"{money[1]}{_MONEY_SCALES[money[2]]} ", sentence)
    sentence = _TIMES.sub("*", _HYPHEN.sub(" ", _GREAT.sub(r"\1 ", _MIXED.sub(" ", sentence))))
    return list(_scaled(_with_words(list(_cut(sentence)))))


def result_follows(tokens: Sequence[Token]) -> bool:
    """Whether a number follows `=`, `so` or the like: the result, whatever stands before."""
    states = next((place for place, token in enumerate(tokens) if token in _STATES), len(tokens))
    return any(isinstance(token, Fraction) for token in tokens[states:])


def _cut(sentence: str) -> Iterator[Token]:
    """Split into numbers, words and signs as written; each run of digits is checked against adjacent characters."""
    before, last, given = "", "", ""  # the word that ends where the next token starts; the token before; the last word
    end = 0
    for match in _TOKEN.finditer(sentence):
        text, kind = match[0], match.lastgroup
        touches = match.start() == end
        end = match.end()
        if kind == "digits":
            if touches and before.isascii() and before and before not in _CURRENCIES:
                raise Unreadable(text)
            value = value_of_digits(text)
            if value is None or (touches and last == ":" and sentence[match.start() - 2 : match.start() - 1].isdigit()):
                raise Unreadable(text)
            yield value
        elif kind == "word" and touches and last == "digits" and text.isascii():
            yield from _attached(text, sentence[end : end + 1])
        elif kind == "word" and _NOT_READ.search(text):
            raise Unreadable(text)
        elif kind == "other":
            if text not in "\"'[]":
                raise Unreadable(text)
        elif text == "-" and len(given) > 1 and _SIGNED.match(sentence, end) and not touches:
            yield "negative"  # " -5": a sign; " - 5" is rather a pause or a sum
        elif text != "$":
            yield text
        before = given = text if kind == "word" else ""
        last = "digits" if kind == "digits" else text


def _attached(text: str, following: str) -> Iterator[Token]:
    """Read letters directly after digits: a unit, a thousand, a multiplication, or something that is not a number."""
    if text == "x" and following.isdigit():
        yield "*"
    elif text in _ORDINALS:
        yield "ordinal"
    elif text in _UNITS or text in ("k", "bn", "mn", "mln"):
        yield text
    elif len(text) < 4 or following.isdigit():
        raise Unreadable(text)
    else:
        yield text


def _with_words(tokens: list[Token]) -> Iterator[Token]:
    """Turn number words into numbers, and drop ordinals (`3rd`)."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if isinstance(token, str) and token.isalpha():
            end = place
            while end < len(tokens) and end < place + 16 and isinstance(word := tokens[end], str) and word.isalpha():
                end += 1
            words = [str(word) for word in tokens[place:end]]
            before = tokens[place - 1] if place else ""
            if adds_a_part(words) and (
                isinstance(before, Fraction) or before in SCALES or not result_follows(tokens[place:])
            ):
                raise Unreadable("and a half")  # "an hour and a half", unless a later number may be the result
            found = number_in_words(words, before if isinstance(before, str) else "")
            if isinstance(before, Fraction):
                found = None if words[0] in SCALES else found
            elif before in SCALES:
                found = None  # "5 hundred thousand"
            if found:
                yield found[0]
                place += found[1]
                continue
        elif isinstance(token, Fraction) and tokens[place + 1 : place + 2] == ["ordinal"]:
            place += 2
            continue
        yield token
        place += 1


_NO_SCALE = re.compile(
    r"mill?iard\w*|mill?ion\w*|billi\w*|trilli\w*|quadri\w*|quinti\w*|mrd|mio|gross|score|mil|myriads?|googol|tens?|[mb]|"
    r"per ?mille?|promille|"
    r"halves|halfs?|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?|\w*dredths?|"
    r"elevenths?|twelfths?|\w+(?:teen|tie)ths?|"
    r"\w*sandths?|squared|cubed|factorial|am|pm|x"
)
"""Words that change the value of the number before them, but are not among the known scales."""


def _scaled(tokens: Iterator[Token]) -> Iterator[Token]:
    """Multiply scale words in and drop per cent signs: GSM8K's golds of percentages are bare."""
    held: Fraction | None = None
    last: Token = ""
    divides = False
    for token in tokens:
        if held is not None and isinstance(token, str):
            if token in SCALES:
                if divides:
                    raise Unreadable(token)  # "1/2 million": a half of a million, or by two million?
                held *= SCALES[token]
                continue
            if token in ("%", "percent"):
                held = Percentage(held)
                continue
            if token.isascii() and _NO_SCALE.fullmatch(token):
                raise Unreadable(token)
        if held is not None:
            yield held
            held = None
        if isinstance(token, Fraction):
            held, divides = token, last == "/"
        else:
            yield token
        last = token
    if held is not None:
        yield held


# The value of digits with separators, such as `1,234.5`, `12,34,567`, `1.234.567`, `1'234` or `1_000`.

_MOST_DIGITS = 40
_GREATEST_EXPONENT = 30
_PLAIN = re.compile(r"\d+|\d*\.\d+")
_GROUPED = re.compile(rf"[1-9]\d{{0,2}}(?:(?:,\d{{3}})+|(?:[ {NARROW}]\d{{3}})+|(?:'\d{{3}})+|(?:_\d{{3}})+)(?:\.\d+)?")
_INDIAN = re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?")
_CONTINENTAL = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3}){2,}(?:,\d+)?|(?:\.\d{3})+,\d+)")


def value_of_digits(written: str) -> Fraction | None:
    """Return the value of digits, with exponents (`1.2e3`); None for a list, a version, or what could be two numbers.

    A single point is a decimal point (`1.234` is a little more than one). A single comma must group thousands: `3,4`
    and `12,50` are rejected, since each may be a list or have a decimal comma.
    """
    figures, marked, exponent = written.partition("e")
    if sum(map(str.isdigit, figures)) > _MOST_DIGITS:
        return None
    if _PLAIN.fullmatch(figures):
        value = Fraction(figures)
    elif _GROUPED.fullmatch(figures) or _INDIAN.fullmatch(figures):
        value = Fraction(re.sub(rf"[, {NARROW}'_]", "", figures))
    elif _CONTINENTAL.fullmatch(figures):
        value = Fraction(figures.replace(".", "").replace(",", "."))
    else:
        return None
    if not marked:
        return value
    power = int(exponent)
    return value * Fraction(10) ** power if abs(power) <= _GREATEST_EXPONENT else None
