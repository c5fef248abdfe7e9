"""What the numbers of a text count, by the word behind each: pages, nights, coins."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from rc1_lib.language.numerals import FIGURE, spelling
from rc1_lib.language.statements import FUNCTION_WORDS

_COUNTED = re.compile(rf"(?:([$€£¥])\s*)?({FIGURE})\s*(%|[A-Za-z]+|[\u3400-\u4dbf\u4e00-\u9fff])?")
_COMPARING = frozenset("more fewer less other others left times new old extra additional".split())
_SHORTEST_PLURAL = 4
_SAME = {"岁": "年"}
"""A year of age is a year."""


def counted(texts: Iterable[str]) -> dict[str, frozenset[str]]:
    """The numbers that stand in figures in these texts, each with all that it counts.

    That is its currency sign or the word behind it, in lower case and without the -s of a plural; of Chinese one
    character. The empty string stands for a place where nothing, or nothing that is counted ("more"), follows.
    """
    found: dict[str, set[str]] = {}
    for text in texts:
        for sign, number, word in _COUNTED.findall(unicodedata.normalize("NFKC", text)):
            found.setdefault(spelling(number), set()).add(_noun(sign or word))
    return {number: frozenset(nouns) for number, nouns in found.items()}


def _noun(word: str) -> str:
    plain = word.lower()
    if plain in FUNCTION_WORDS or plain in _COMPARING:
        return ""
    return plain.removesuffix("s") if len(plain) >= _SHORTEST_PLURAL else _SAME.get(plain, plain)
