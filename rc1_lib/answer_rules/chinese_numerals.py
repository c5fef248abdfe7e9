"""Chinese numerals in text, written as digits: 七十二, 两百零五, 1.2亿, 二分之一, 百分之五, 负三."""

from __future__ import annotations

import re
from fractions import Fraction

_DIGITS = {mark: value for value, marks in enumerate(
    ("零〇", "一壹", "二两兩贰", "三叁", "四肆", "五伍", "六陆", "七柒", "八捌", "九玖")
) for mark in marks}  # fmt: skip
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_SCALED = {**_UNITS, **_MYRIADS}
_MARKS = "".join((*_DIGITS, *_UNITS, *_MYRIADS))
_ANY = re.compile(f"[{_MARKS}半几幾负負第多余餘数]|零下")
_NO_NUMBER = re.compile(
    # After a numeral 一 belongs to it (十一起 has 11), but in 一共 and the like: 三十分 is 30, 两万一千 is 21,000.
    rf"一(?=[共定些旦致切])|(?<![{_MARKS}])一(?=[起样樣般下直边邊])|"
    rf"(?<![{_MARKS}\d])(?<!\d\s)(?:十分(?![之钟鐘])|[万萬]一|千[万萬](?=不|要|别|別))|"
    "(?<=[统統唯同])一(?![百千万])|星期[一二三四五六]|周[一二三四五六]|百分点|礼拜[一二三四五六]|一点儿|(?<=每)一"
)
_ORDINAL = re.compile(rf"第\s?[{_MARKS}\d]+")
_SCALE = f"[{''.join(_SCALED)}]"
_PART = rf"(?:\d[\d,]*(?:\.\d+)?\s?{_SCALE}|[{_MARKS}])(?:[{_MARKS}点點]|\d+(?:\.\d+)?(?={_SCALE}))*\d*"
_NUMERAL = re.compile(
    rf"(?P<whole>(?:{_PART}|\d+))又(?P<of>(?:{_PART}|\d+))分之(?P<over>(?:{_PART}|\d+))|"
    rf"百分之\s*(?P<percent>{_PART}|[\d.]+)|(?P<below>{_PART}|\d+)分之(?P<above>{_PART}|\d+)|(?P<plain>{_PART})"
)
_KILO = re.compile(r"(?<=\d)\s?千(?=克(?!拉)|[米瓦卡帕焦赫伏]|字节|字節)")
"""A thousand that belongs to the unit: 72千克 is 72 kg."""
_MINUS = re.compile(r"负|負|零下")
VAGUE = re.compile(rf"[几幾]|半|(?:[{_MARKS}]|\d\s?)[个個元块天只人]?[多余餘](?!出|少)|数[十百千万]")
"""Marks of inexact numbers."""


class UnclearNumeral(ValueError):
    """A numeral without a single value, such as 三四."""


def in_digits(text: str) -> str:
    """Replace every Chinese numeral with spaced digits; ordinals and 一 as a word are left out.

    Raises:
        UnclearNumeral: for a numeral without a single value (三四, 十几, 三个半).
    """
    if not _ANY.search(text):
        return _MINUS.sub("-", text)
    text = _NO_NUMBER.sub("", _ORDINAL.sub("", _KILO.sub(" ", text))).replace("一半", " 1/2 ").replace("半数", " 1/2 ")
    if VAGUE.search(text):
        raise UnclearNumeral(text)
    return _NUMERAL.sub(_written, _MINUS.sub("-", text))


def _written(match: re.Match[str]) -> str:
    if match["percent"]:
        return f" {_decimal(numeral(match['percent']))}% "
    if match["whole"]:
        value = numeral(match["whole"]) + numeral(match["over"]) / (numeral(match["of"]) or 1)
        return f" {value} "
    if match["below"]:
        return f" {numeral(match['above'])}/{numeral(match['below'])} "
    return f" {_decimal(numeral(match['plain']))} "


def _decimal(value: Fraction) -> str:
    """Format without an exponent: the numerals here end after a few decimals."""
    digits = f"{value.numerator * 10**12 // value.denominator:013d}"
    return f"{digits[:-12]}.{digits[-12:]}".rstrip("0").rstrip(".")


def numeral(text: str) -> Fraction:
    """Return the value of one numeral of Chinese digits, units and digits 0 to 9.

    Raises:
        UnclearNumeral: two digits in a row (三四: three or four), or units out of order.
    """
    whole, point, decimals = text.replace("點", "点").replace(",", "").partition("点")
    if point:
        if not decimals or any(mark not in _DIGITS for mark in decimals):
            raise UnclearNumeral(text)
        return _whole(whole) + Fraction(int("".join(str(_DIGITS[mark]) for mark in decimals)), 10 ** len(decimals))
    return _whole(whole)


def _whole(text: str) -> Fraction:
    if len(text) > 1 and all(mark in _DIGITS for mark in text):
        if not set(text) & set("零〇"):
            raise UnclearNumeral(text)
        return Fraction(int("".join(str(_DIGITS[mark]) for mark in text)))
    for unit in "亿億", "万萬":
        at = max(text.rfind(mark) for mark in unit)
        if at >= 0:
            head, tail = text[:at], text[at + 1 :]
            scale = _MYRIADS[text[at]]
            if not head:
                raise UnclearNumeral(text)
            if head in _UNITS:  # 百万 is a million
                head = f"一{head}"
            return _whole(head) * scale + _rest(tail, scale)
    return _section(text)


def _rest(tail: str, scale: int) -> Fraction:
    """Read what follows a unit: 一万二 is 12,000."""
    if len(tail) == 1 and _DIGITS.get(tail):
        return Fraction(_DIGITS[tail] * scale // 10)
    value = _whole(tail) if tail else Fraction(0)
    if value >= scale:
        raise UnclearNumeral(tail)
    return value


def _section(text: str) -> Fraction:
    """Read a number below ten thousand: digits and 千, 百, 十, from the greatest down."""
    total, held, last = Fraction(0), None, 10**5
    parts: list[str] = re.findall(r"\d+(?:\.\d+)?|.", text)
    for place, part in enumerate(parts):
        if part in _UNITS:
            unit = _UNITS[part]
            if unit >= last or (held is None and unit != 10):
                raise UnclearNumeral(text)
            total, held, last = total + (Fraction(1) if held is None else held) * unit, None, unit
        elif held is not None and held != 0:
            raise UnclearNumeral(text)
        elif part in _DIGITS or part[0].isdigit():
            held = Fraction(_DIGITS[part]) if part in _DIGITS else Fraction(part)
            if place and part in _DIGITS and place == len(parts) - 1 and last > 10 and parts[place - 1] in _UNITS:
                held *= last // 10  # 一百五 is 150
        else:
            raise UnclearNumeral(text)
    return total + (held or 0)
