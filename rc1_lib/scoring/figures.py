"""The numbers that a text says in figures, in one spelling each: `1,000.50` and `1000.5` are the same number."""

from __future__ import annotations

import re
import unicodedata

_FIGURE = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?|\.[0-9]+")
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
"""A character in JSON's spelling, whose digits are no number: `\\u00d7`."""


def figures(text: str) -> list[str]:
    """The numbers of `text` in reading order, without their signs.

    They are compared as texts and never converted, so that a number may have any length.

    Args:
        text: plain text, or the arguments of a call as JSON, well-formed or not.
    """
    plain = unicodedata.normalize("NFKC", _ESCAPE.sub(" ", text))
    return [_spelling(number) for number in _FIGURE.findall(plain)]


def _spelling(number: str) -> str:
    digits = number.replace(",", "")
    whole, point, decimals = digits.partition(".")
    decimals = decimals.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + decimals if decimals else "")
