"""What a word is: the one tokenizer of every text measure, as polars expressions and as plain Python.

Text is brought into Unicode form NFKC (full-width digits become digits, accents are composed) and lower-cased first.
Scripts that are written without spaces have no words that a pattern could find: each of their characters is a token of
its own (Han; Kana, Thai, Lao, Khmer and Burmese with the marks that belong to it). Any other word is a run of letters,
digits and combining marks, with apostrophes inside it ("don't" is one token, "3.5" are two).
Punctuation is never a token.

`length` also counts punctuation marks and symbols. It is an *estimate* of how many BPE tokens a model would see, good
to compare rows with one another; only a model's own tokenizer knows the true number.
"""

from __future__ import annotations

import re
import unicodedata

import polars as pl
import regex

# The same text is read by Rust's regex (polars) and by the `regex` module in version-1 mode; both know `&&`.
_MARKED = r"\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
UNSPACED = rf"\p{{Han}}{_MARKED}"
"""Scripts written without spaces, for use inside a character class."""
_LETTER = rf"[\p{{L}}\p{{N}}\p{{M}}&&[^{UNSPACED}]]"
TOKEN_PATTERN = rf"\p{{Han}}|[{_MARKED}]\p{{M}}*|{_LETTER}+(?:['’]{_LETTER}+)*"
LENGTH_PATTERN = rf"{TOKEN_PATTERN}|[\p{{P}}\p{{S}}]"

_TOKEN = regex.compile(TOKEN_PATTERN, regex.V1)
_LENGTH = regex.compile(LENGTH_PATTERN, regex.V1)

# The same patterns where every character is ASCII: `re` finds them three times as fast.
_ASCII_PATTERN = r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*"
_ASCII_TOKEN = re.compile(_ASCII_PATTERN)
_ASCII_LENGTH = re.compile(rf"{_ASCII_PATTERN}|[!-/:-@\[-`{{-~]")


def tokenize(text: str) -> list[str]:
    """The tokens of one text, in reading order."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    found: list[str] = _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())
    return found


def text_length(text: str) -> int:
    """Words, Han characters and punctuation marks of one text: an estimate of its length in BPE tokens."""
    return len((_ASCII_LENGTH if text.isascii() else _LENGTH).findall(text))


def tokens(column: str) -> pl.Expr:
    """The tokens of every text in `column`: a list[str] per row, null where the text is null."""
    return pl.col(column).str.normalize("NFKC").str.to_lowercase().str.extract_all(TOKEN_PATTERN)


def length(column: str) -> pl.Expr:
    """Words, Han characters and punctuation marks of every text in `column` (u32): an estimate, see the module."""
    return pl.col(column).str.count_matches(LENGTH_PATTERN)
