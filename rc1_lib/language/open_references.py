"""Whether a dialogue speaks of something that it does not name: general lists of vague wording, English and Chinese.

Two kinds are told apart. An open *reference* ("a certain town", "the ship I have in mind", 某人) is looked for in what
the user says; a page that speaks of somebody without naming him leaves nothing open about the question. An open
*quantity* ("some apples", 若干) is looked for in pages too, but only where the user asks for a quantity: prose is full
of "several", which matters only to who has to calculate with it.

Phrases that sound like either but point at nothing ("some of these days", "somebody told me", "could somebody") are
taken out first. Bare 几 and 那个 are not on the lists: the first mostly asks a question, the second mostly points back.
The patterns are read alike by Rust's regex (polars) and by `re`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl


def _either(phrases: Sequence[str]) -> str:
    return "(?:" + "|".join(phrases) + ")"


def _words(phrases: str) -> str:
    # Not `\b`: which letters it knows differs between engines, and Unicode's makes Rust's slow on Chinese.
    return rf"(?i)(?:^|[^a-z])(?:{phrases})(?:[^a-z]|$)"


_THING = _either(
    "person man woman child town city village place country state region island river lake mountain ship boat book "
    "novel film movie song album guild company club team school building tower bridge year day name".split()
)
_SAID = _either("told tells said says claims claimed mentioned wrote".split())
_MAY = _either("can could would will may might should must shall".split())
_KIND = _either("parts? left other others say said time times day days kind sort form type way ways extent".split())

IDLE = (
    _words(
        rf"while some|some {_KIND}|{_MAY} some(?:body|one)|some(?:body|one) (?:who|that|else)|"
        rf"some(?:body|one)[^a-z.,;:?!…][^.,;:?!…]{{0,30}}? {_SAID}|some(?:body|one) left [^.,;:?!…]{{0,40}}? there"
    )
    + "|[多少长短高低大小早晚轻重]一些"
)
"""Vague words that point at nothing: hearsay, anybody at all, and set phrases."""

REFERENCE = (
    _words(
        rf"a certain|certain {_THING}|a particular {_THING}|some {_THING}|somebody|someone|in question|"
        r"(?:i have|i had|i['’]ve) in mind|i(?:['’]m| am) thinking of|so-and-so|such-and-such"
    )
    + "|某|那[条座艘本位名家]|那个(?:人|行会|国家|城市|公司|地方|组织)"
)
"""Somebody or something that is spoken of without a name."""

QUANTITY = (
    _words("some|several|a few|a couple of|a handful of|dozens of|an unknown number of") + "|若干|一些|好几|少许|许多"
)
"""A quantity without a number."""

ASKS_QUANTITY = (
    _words(
        "how (?:many|much|long|far|old|often|tall|heavy|big|large|high|wide|deep)|number|amount|total|altogether|"
        "average|costs?|price|sum|distance|percent(?:age)?|fraction"
    )
    + "|多少|几|总共|一共|平均"
)
"""The question is about a quantity."""

_IDLE, _REFERENCE, _QUANTITY, _ASKS_QUANTITY = map(re.compile, (IDLE, REFERENCE, QUANTITY, ASKS_QUANTITY))


def refers_openly(text: str) -> bool:
    """Whether a text speaks of somebody or something without a name."""
    return bool(_REFERENCE.search(_IDLE.sub(" ", text)))


def asks_quantity(question: str) -> bool:
    """Whether a question is about a quantity."""
    return bool(_ASKS_QUANTITY.search(question))


def is_open(said: str, read: str) -> bool:
    """Whether something is left open.

    Args:
        said: the user's first message.
        read: what tools returned, without the user's replies to questions.
    """
    pointing = _IDLE.sub(" ", said)
    if _REFERENCE.search(pointing):
        return True
    if not _ASKS_QUANTITY.search(said):
        return False
    return bool(_QUANTITY.search(pointing) or _QUANTITY.search(_IDLE.sub(" ", read)))


def open_reference(said: str, read: str) -> pl.Expr:
    """`is_open` over columns of texts, by their names; a null text holds nothing."""
    user, pages = pl.col(said).fill_null(""), pl.col(read).fill_null("")
    pointing = user.str.replace_all(IDLE, " ")
    vague = pointing.str.contains(QUANTITY) | pages.str.replace_all(IDLE, " ").str.contains(QUANTITY)
    return pointing.str.contains(REFERENCE) | (user.str.contains(ASKS_QUANTITY) & vague)
