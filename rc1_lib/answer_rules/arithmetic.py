"""Arithmetic within an answer: replace every sum among its tokens with its value, in exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from rc1_lib.answer_rules.tokens import Percentage, Token, Unreadable, result_follows

_GREATEST_POWER = 64
_GREATEST = 10**40
_OPENS = frozenset(("=", "≈", ":", "(", ",", ".", ";", "—", "?", "!", "~"))
"""Signs after which a `-` is a number's minus sign."""


@dataclass(frozen=True, slots=True)
class Sum:
    """A number, and whether it was calculated here."""

    value: Fraction
    reckoned: bool = False


_LEADING = frozenset("is are was were be equals of to at by about so then therefore hence result answer usd us".split())
Part = Sum | str
"""A value, or a word or sign."""
_WORDS = {"plus": "+", "minus": "-", "negative": "-", "times": "*", "over": "/"}


def reckoned(tokens: Sequence[Token]) -> list[Part]:
    """Return `tokens` with the longest sums replaced by their values.

    Raises:
        Unreadable: for a sum that is incomplete, too large, or may be a range or a date (`5-6`, `1/2/3`).
    """
    reader = _Reader(tokens)
    parts: list[Part] = []
    while reader.place < len(tokens):
        parts.append(reader.next_part(parts[-1] if parts else None))
    return parts


class _Reader:
    """A recursive-descent parser of sums; anything else passes through unchanged."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens, self.place, self.depth = tokens, 0, 0
        self.signs: list[str] = []

    def next_part(self, before: Part | None) -> Part:
        token = self.tokens[self.place]
        sign = self._sign()
        starts = before is None or isinstance(before, str)
        if sign in ("+", "-") and self._number_follows(1):
            # After a word a sign could belong to a sum with it: "x - 5", "clips + 24".
            word = isinstance(token, str) and token not in "+-"
            if isinstance(before, Sum) or (
                not word and isinstance(before, str) and before not in _OPENS and not _may_lead(before)
            ):
                raise Unreadable(sign)
            return self._sum()
        if isinstance(token, Fraction) or (token == "(" and starts and self._closes()) or token == "sqrt":
            return self._sum()
        self.place += 1
        if token in ("^", "≶"):
            raise Unreadable(token)
        if token in ("+", "/", "*", "-"):
            return self._loose(token, before)
        return token

    def _loose(self, sign: str, before: Part | None) -> str:
        """Accept a sign that belongs to no sum: a bullet, a pause, a rate; otherwise something is missing."""
        following = self.tokens[self.place] if self.place < len(self.tokens) else None
        if sign == "*" and (before is None or following is None or not isinstance(following, Fraction)):
            return ","
        if sign == "-" and isinstance(following, str) and (isinstance(before, Sum) or before is None):
            return "—"
        if sign == "/" and isinstance(following, str) and following.isalpha() and before is not None:
            return "per"
        raise Unreadable(sign)

    def _sum(self) -> Sum:
        start, self.signs = self.place, []
        value = self._added()
        used = self.tokens[start : self.place]
        claimed = self.tokens[self.place : self.place + 1] in (["="], ["≈"])
        if self.signs == ["-"] and not claimed:
            left, *_, right = used
            if len(used) == 3 and isinstance(left, Fraction) and isinstance(right, Fraction) and left <= right:
                raise Unreadable("a range")
        if self.signs == ["/", "/"] and len(used) == 5:
            raise Unreadable("a date")
        shares = "*" in self.signs and any(isinstance(token, Percentage) for token in used)
        if shares and not result_follows(self.tokens[self.place :]):
            raise Unreadable("a share, or so many per cent")
        ahead = self._sign()
        if ahead in ("+", "*", "/", "^") and not (ahead in "/*" and self._word_follows()):
            raise Unreadable(str(ahead))
        return Sum(value, bool(self.signs))

    def _added(self) -> Fraction:
        value = self._multiplied()
        while (sign := self._sign()) in ("+", "-") and self._number_follows(1):
            self._step(sign)
            other = self._multiplied()
            value = _bounded(value + other if sign == "+" else value - other)
        return value

    def _multiplied(self) -> Fraction:
        value = self._raised()
        while (sign := self._sign()) in ("*", "/") and self._number_follows(1):
            self._step(sign)
            other = self._raised()
            if sign == "/" and not other:
                raise Unreadable("a division by zero")
            value = _bounded(value * other if sign == "*" else value / other)
        return value

    def _raised(self) -> Fraction:
        if (sign := self._sign()) in ("+", "-"):
            self.place += 1
            value = self._raised()
            return -value if sign == "-" else value
        value = self._atom()
        if self._sign() == "^" and self._number_follows(1):
            self._step("^")
            power = self._raised()
            if power.denominator != 1 or abs(power) > _GREATEST_POWER or (not value and power < 0):
                raise Unreadable("a power")
            value = _bounded(value ** int(power))
        return value

    def _atom(self) -> Fraction:
        token = self.tokens[self.place]
        self.place += 1
        if isinstance(token, Fraction):
            return self._mixed(token)
        if token == "sqrt" and self._sign() == "(":
            self.signs.append("sqrt")
            return _root(self._atom())
        if token != "(" or self.depth > 20:
            raise Unreadable(str(token))
        self.depth += 1
        value = self._added()
        self.depth -= 1
        if self.place >= len(self.tokens) or self.tokens[self.place] != ")":
            raise Unreadable("(")
        self.place += 1
        return value

    def _mixed(self, whole: Fraction) -> Fraction:
        """Read `1 1/2`: a whole number and a fraction right after it."""
        rest = self.tokens[self.place : self.place + 3]
        if whole.denominator == 1 and len(rest) == 3 and rest[1] == "/":
            above, _, below = rest
            if isinstance(above, Fraction) and isinstance(below, Fraction) and 0 < above < below:
                before = self.tokens[self.place - 2] if self.place > 1 else ""
                if before == "/" or self.tokens[self.place + 3 : self.place + 4] == ["/"]:
                    raise Unreadable("a mixed number")
                self.place += 3
                return whole + above / below
        return whole

    def _step(self, sign: str) -> None:
        self.signs.append(sign)
        self.place += (
            2
            if self.tokens[self.place : self.place + 2] == ["divided", "by"]
            or (self.tokens[self.place : self.place + 2] == ["multiplied", "by"])
            else 1
        )

    def _sign(self, ahead: int = 0) -> str | None:
        place = self.place + ahead
        token = self.tokens[place] if place < len(self.tokens) else None
        if not isinstance(token, str):
            return None
        if token in ("divided", "multiplied"):
            return ("/" if token == "divided" else "*") if self.tokens[place + 1 : place + 2] == ["by"] else None
        return _WORDS.get(token, token)

    def _number_follows(self, ahead: int) -> bool:
        """Whether a number follows the sign here, skipping its own sign and brackets."""
        place = self.place + ahead
        if self.tokens[place - 1 : place + 1] in (["divided", "by"], ["multiplied", "by"]):
            place += 1
        while place < len(self.tokens) and self.tokens[place] in ("(", "-", "+", "sqrt", "minus", "negative"):
            place += 1
        return place < len(self.tokens) and isinstance(self.tokens[place], Fraction)

    def _word_follows(self) -> bool:
        following = self.tokens[self.place + 1] if self.place + 1 < len(self.tokens) else ""
        return following == "" or (isinstance(following, str) and following.isalpha())

    def _closes(self) -> bool:
        """Whether the bracket here contains only a sum."""
        depth = 0
        for token in self.tokens[self.place :]:
            depth += (token == "(") - (token == ")")
            if not depth:
                return True
            if isinstance(token, str) and token not in "()+-*/^" and token not in ("sqrt", *_WORDS):
                return False
        return False


def _may_lead(word: str) -> bool:
    """Whether a minus sign after `word` belongs to a number: not after a name such as the x of `x - 5`."""
    return not word.isascii() or word in _LEADING


def _bounded(value: Fraction) -> Fraction:
    if abs(value.numerator) > _GREATEST or value.denominator > _GREATEST:
        raise Unreadable("a number beyond reason")
    return value


def _root(value: Fraction) -> Fraction:
    above, below = isqrt(max(0, value.numerator)), isqrt(value.denominator)
    if Fraction(above, below) ** 2 != value:
        raise Unreadable("a root that is no fraction")
    return Fraction(above, below)
