"""English text for the sources: tidy spaces, sentences, whole words, content words."""

from __future__ import annotations

import re

_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|Prof|Jr|vs|e\.g|i\.e|approx)\.$", re.IGNORECASE)
_BOUNDARY = re.compile(r"""[.?!][.?!]*["')\]”’]*\s+(?=["'(“‘$€£]*[A-Z0-9])""")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_EMPTY_WORDS = frozenset(
    "a an the of to in on at by for from with and or but not is are was were be been being do does did has have had can"
    " could would will shall should may might must that this these those there it its they them their he she his her"
    " who whom whose what which when where why how many much more most than then if as into about any some all one"
    " same during would someone something people person kind type".split()
)


def tidy(text: str) -> str:
    """Return `text` on one line with single spaces, zero-width spaces removed."""
    return " ".join(text.replace("\u200b", "").split())


def sentences(text: str) -> list[str]:
    """Return the sentences of tidy English `text`; a title such as "Mr." does not end one."""
    found, start = [], 0
    for match in _BOUNDARY.finditer(text):
        sentence = text[start : match.end()].strip()
        if not _ABBREVIATION.search(sentence):
            found.append(sentence)
            start = match.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def word_positions(value: str, text: str) -> list[int]:
    """Find `value` in `text` without adjacent letters or digits; `$12` and `Creed (band)` work too."""
    found, at = [], text.find(value)
    while at >= 0:
        end = at + len(value)
        if not _is_word(text[max(at - 1, 0) : at]) and not _is_word(text[end : end + 1]):
            found.append(at)
        at = text.find(value, at + 1)
    return found


def occurrences(value: str, text: str) -> int:
    """Count how often `value` occurs in `text` as a whole word."""
    return len(word_positions(value, text))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def content_words(text: str) -> set[str]:
    """Return the lower-case words that carry meaning, with a plural or third-person `s` cut off."""
    words = {word.casefold().split("'")[0].split("’")[0] for word in _WORD.findall(text)}
    return {_stem(word) for word in words - _EMPTY_WORDS}


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
