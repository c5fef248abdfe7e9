"""The numbers that stand in a text, in one spelling each: `1,000.50` and `1000.5` are the same number.

They are compared as texts and never converted, so that a number may have any length. Zero is spelled as nothing.
Words count as the number that a sum needs for them: "twice" and "half" as 2, "percent" as 100.
"""

from __future__ import annotations

import re
import unicodedata

import polars as pl

_CARDINALS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
WORDS: dict[str, str] = {
    **{word: str(value) for value, word in enumerate(_CARDINALS, 1)},
    **{word: str(value) for value, word in enumerate("seventeen eighteen nineteen twenty".split(), 17)},
    **{word: f"{value}0" for value, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)},
    **dict.fromkeys("twice half halves double doubles doubled pair pairs couple 两 二 半".split(), "2"),
    **dict.fromkeys("thrice triple tripled third thirds 三".split(), "3"),
    **dict.fromkeys("quarter quarters fourth fourths 四".split(), "4"),
    **{word: str(value) for value, word in enumerate("五 六 七 八 九 十".split(), 5)},
    **dict.fromkeys("fifth fifths".split(), "5"),
    **dict.fromkeys("dozen dozens".split(), "12"),
    **dict.fromkeys("hundred percent % 百".split(), "100"),
    "thousand": "1000",
}
"""Number words of English and Chinese; 一 is left out, which is a part of too many other words."""

_LATIN = "|".join(word for word in WORDS if word.isascii() and word.isalpha())
_SIGNS = "".join(word for word in WORDS if not (word.isascii() and word.isalpha()))
FIGURE = r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?|\.[0-9]+"
NUMBER = rf"{FIGURE}|[{_SIGNS}]|(?i:\b(?:{_LATIN})\b)"
ESCAPE = r"\\u[0-9a-fA-F]{4}"
"""A character in JSON's spelling, whose digits are no number: `\\u00d7`."""

_FIGURE, _NUMBER, _ESCAPE = map(re.compile, (FIGURE, NUMBER, ESCAPE))
_BELOW_ZERO = re.compile(rf"(?:(?<![\w)])[-\u2212]|负)[$€£¥]?({FIGURE})")


def numbers(text: str) -> list[str]:
    """The numbers that `text` says, in figures and in words, in reading order."""
    return [spelling(number) for number in _NUMBER.findall(unicodedata.normalize("NFKC", text))]


def operands(arguments: str) -> list[str]:
    """The numbers that a sum is given, in reading order; in figures only, since there `%` is an operator.

    Args:
        arguments: a call's arguments as they stand, well-formed JSON or not.
    """
    return [spelling(number) for number in _FIGURE.findall(plain(arguments))]


def plain(arguments: str) -> str:
    """The arguments of a sum in ASCII's figures and signs, as far as they have them; a JSON escape is a blank."""
    return unicodedata.normalize("NFKC", _ESCAPE.sub(" ", arguments))


def below_zero(text: str) -> frozenset[str]:
    """The numbers in figures with a sign of their own: `-3`, `$-3`, `负3`, and neither `17-18` nor `17 - 18`."""
    return frozenset(map(spelling, _BELOW_ZERO.findall(unicodedata.normalize("NFKC", text))))


def numbers_of(text: pl.Expr) -> pl.Expr:
    """`numbers` of every text: a list[str] per row, null where the text is null."""
    return text.str.normalize("NFKC").str.extract_all(NUMBER).list.eval(_spelled(pl.element()))


def operands_of(arguments: pl.Expr) -> pl.Expr:
    """`operands` of every call: a list[str] per row, null where the arguments are null."""
    plain = arguments.str.replace_all(ESCAPE, " ").str.normalize("NFKC")
    return plain.str.extract_all(FIGURE).list.eval(_spelled(pl.element()))


def spelling(number: str) -> str:
    """One number, in figures or as a word, in its one spelling."""
    lowered = number.lower()
    spelled = WORDS.get(lowered, lowered).replace(",", "").lstrip("0")
    return spelled.rstrip("0").rstrip(".") if "." in spelled else spelled


def _spelled(number: pl.Expr) -> pl.Expr:
    spelled = number.str.to_lowercase().replace(WORDS).str.replace_all(",", "", literal=True).str.strip_chars_start("0")
    decimal = spelled.str.contains(".", literal=True)
    return pl.when(decimal).then(spelled.str.strip_chars_end("0").str.strip_chars_end(".")).otherwise(spelled)
