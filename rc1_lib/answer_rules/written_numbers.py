"""Whole numbers in words: English, and Chinese numerals."""

from __future__ import annotations

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = ((10**6, "million"), (10**3, "thousand"))
MOST_ENGLISH, MOST_CHINESE = 10**9 - 1, 10**8 - 1
_DIGITS = "零一二三四五六七八九"
_UNITS = ("", "十", "百", "千")


def english(number: int) -> str:
    """Write a number from 0 to `MOST_ENGLISH` in words: `one thousand two hundred five`, `seventy-two`."""
    parts = []
    for scale, word in _SCALES:
        if number >= scale:
            parts.append(f"{english(number // scale)} {word}")
            number %= scale
    if number >= 100:
        parts.append(f"{_SMALL[number // 100]} hundred")
        number %= 100
    if number >= 20:
        ones = f"-{_SMALL[number % 10]}" if number % 10 else ""
        parts.append(_TENS[number // 10] + ones)
    elif number or not parts:
        parts.append(_SMALL[number])
    return " ".join(parts)


def chinese(number: int) -> str:
    """Write a number from 0 to `MOST_CHINESE` in Chinese numerals: `七十二`, `一千二百零五`, `一万零三百`."""
    if number >= 10**4:
        high, low = divmod(number, 10**4)
        gap = "零" if 0 < low < 1000 else ""
        return f"{chinese(high)}万{gap}{_four(low) if low else ''}"
    written = _four(number) if number else "零"
    return written.removeprefix("一") if written.startswith("一十") else written


def _four(number: int) -> str:
    """Write up to four digits; inner zeros are written once, trailing zeros not at all."""
    written, zero = "", False
    for place in (3, 2, 1, 0):
        digit = number // 10**place % 10
        if digit:
            written += ("零" if zero and written else "") + _DIGITS[digit] + _UNITS[place]
        zero = digit == 0
    return written
