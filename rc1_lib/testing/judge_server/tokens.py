"""How many tokens a text has, roughly: what a provider's bill is made of."""

from __future__ import annotations

import math


def tokens(text: str) -> int:
    """About one token for four ASCII characters and one for every other character."""
    ascii_only = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_only / 4) + len(text) - ascii_only


def cut(text: str, most: int) -> str:
    """The beginning of `text` that has at most `most` tokens."""
    ascii_only = others = 0
    for place, character in enumerate(text):
        if character.isascii():
            ascii_only += 1
        else:
            others += 1
        if math.ceil(ascii_only / 4) + others > most:
            return text[:place]
    return text
