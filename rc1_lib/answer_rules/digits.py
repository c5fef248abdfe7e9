"""The value of digits with separators, such as `1,234.5`, `12,34,567`, `1.234.567`, `1'234` or `1_000`."""

from __future__ import annotations

import re
from fractions import Fraction

from rc1_lib.answer_rules.plain_text import NARROW

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
