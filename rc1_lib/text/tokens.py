"""The tokenizer of all text measures, as polars expressions and as plain Python.

Text is first normalised to Unicode NFKC (full-width digits become digits, accents are composed) and lower-cased.
In scripts that are written without spaces, each character is a token: Han characters alone; Kana, Thai, Lao, Khmer and
Burmese with their combining marks. In other scripts a word is a run of letters, digits and combining marks that may
contain apostrophes ("don't" is one token, "3.5" is two). Punctuation is never a token.

`length` also counts punctuation marks and symbols. It *estimates* how many BPE tokens a model would see, which suffices
to compare rows with one another; the true number depends on the model's tokenizer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import polars as pl
import regex

# The patterns are used by Rust's regex (polars) and by the `regex` module in version-1 mode; both support `&&`.
_MARKED = r"\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
UNSPACED = rf"\p{{Han}}{_MARKED}"
"""Scripts written without spaces, for use inside a character class."""
_LETTER = rf"[\p{{L}}\p{{N}}\p{{M}}&&[^{UNSPACED}]]"
TOKEN_PATTERN = rf"\p{{Han}}|[{_MARKED}]\p{{M}}*|{_LETTER}+(?:['’]{_LETTER}+)*"
LENGTH_PATTERN = rf"{TOKEN_PATTERN}|[\p{{P}}\p{{S}}]"

_TOKEN = regex.compile(TOKEN_PATTERN, regex.V1)
_LENGTH = regex.compile(LENGTH_PATTERN, regex.V1)

# The same patterns for ASCII texts, in which `re` finds them three times as fast.
_ASCII_PATTERN = r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*"
_ASCII_TOKEN = re.compile(_ASCII_PATTERN)
_ASCII_LENGTH = re.compile(rf"{_ASCII_PATTERN}|[!-/:-@\[-`{{-~]")


def tokenize(text: str) -> list[str]:
    """Return the tokens of one text, in reading order."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    found: list[str] = _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())
    return found


def text_length(text: str) -> int:
    """Count the tokens, punctuation marks and symbols of one text: an estimate of its length in BPE tokens."""
    return len((_ASCII_LENGTH if text.isascii() else _LENGTH).findall(text))


def tokens(column: str) -> pl.Expr:
    """Return the tokens of every text in `column`: a list[str] per row, null where the text is null."""
    return pl.col(column).str.normalize("NFKC").str.to_lowercase().str.extract_all(TOKEN_PATTERN)


def length(column: str) -> pl.Expr:
    """Count the tokens, punctuation marks and symbols of every text in `column` (u32), as `text_length` does."""
    return pl.col(column).str.count_matches(LENGTH_PATTERN)


_PART = 500
"""Words of one regular expression, which may not be larger than the engine allows."""


def holding_one_of(texts: pl.Series, words: Iterable[str | None]) -> pl.Series:
    """Return for each text whether it holds one of the words, whole and in any case."""
    known = sorted({word.casefold() for word in words if word})
    found = pl.repeat(value=False, n=len(texts), eager=True, dtype=pl.Boolean)
    for start in range(0, len(known), _PART):
        found |= texts.str.contains(f"(?i)(?:{'|'.join(map(_whole, known[start : start + _PART]))})")
    return found


def _whole(word: str) -> str:
    """Chinese words and those in brackets need no edges."""
    edges = [r"\b" if mark.isascii() and mark.isalnum() else "" for mark in (word[0], word[-1])]
    return f"{edges[0]}{pl.escape_regex(word)}{edges[1]}"
