"""Small rules for trying the check: three sound ones, and many with one fault each."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from fractions import Fraction

_WRAPPED = (
    r"(.+)[.。!]",
    r"\*\*(.+)\*\*", r"\*(.+)\*", r"`(.+)`", r'"(.+)"', r"'(.+)'", r"\$(.+)\$", r"\\boxed\{(.+)\}", r"\\\((.+)\\\)",
    r"\((.+)\)", r"(?:The|Final) answer(?: is|:) (.+)", r"答案：(.+)", r"= (.+)", r"x = (.+)", r"#### (.+)", r"\$(.+)",
    r"(.+) apples", r"共(.+)个", r"So there are (.+) apples left", r"\d+ \+ 1 = (.+)", r"In short: (.+)", r"So (.+)",
)  # fmt: skip
_PLAIN = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:(?:,|\{,\}|\u202f)\d{3})+)(?:\.\d+)?")
_CHINESE = dict(zip("零一二三四五六七八九", range(10), strict=True))
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10**4}
_ENGLISH = {
    word: at
    for at, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {word: 10 * at for at, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
_ENGLISH_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6}
_YES = {"yes", "true", "it is true", "correct", "yes, it is", "是", "是的", "对", "正确", "能", "会"}
_NO = {"no", "false", "it is false", "incorrect", "no, it is not", "否", "不是", "不对", "不正确", "不能", "不会"}


def unwrapped(text: str) -> str:
    """Strip mark-up, frames and words that do not change the answer."""
    text = text.strip()
    for pattern in _WRAPPED:
        if match := re.fullmatch(pattern, text):
            return unwrapped(match[1])
    return text


def value(text: str) -> Fraction | None:
    """The one number that a text states, by a list of spellings; None for anything else."""
    said = unwrapped(text)
    said = "".join(chr(ord(mark) - 0xFEE0) if "！" <= mark <= "～" else mark for mark in said).replace("\u2212", "-")
    if said.startswith(("minus ", "负")):
        found = value(said.removeprefix("minus ").removeprefix("负"))
        return None if found is None else -found
    if match := re.fullmatch(r"(.+?)(?: million| × 10\^3|e3)", said):
        found = value(match[1])
        return None if found is None else found * (10**6 if said.endswith("million") else 1000)
    if match := re.fullmatch(r"(-?\d+)/(\d+)|\\frac\{(\d+)\}\{(\d+)\}", said):
        return Fraction(int(match[1] or match[3]), int(match[2] or match[4]))
    if _PLAIN.fullmatch(said):
        return Fraction(re.sub(r",|\{,\}|\u202f", "", said))
    words = re.split(r"[- ]", said)
    if set(words) <= {*_ENGLISH, *_ENGLISH_SCALES}:
        return Fraction(_english(words))
    if said and set(said) <= {*_CHINESE, *_CHINESE_UNITS}:
        return Fraction(_chinese(said))
    return None


def _english(words: Sequence[str]) -> int:
    total = part = 0
    for word in words:
        if word == "hundred":
            part *= 100
        elif word in _ENGLISH_SCALES:
            total, part = total + part * _ENGLISH_SCALES[word], 0
        else:
            part += _ENGLISH[word]
    return total + part


def _chinese(text: str) -> int:
    high, separator, low = text.partition("万")
    if separator:
        return 10**4 * _chinese(high) + (_chinese(low) if low else 0)
    total, digit = 0, 0
    for at, mark in enumerate(text):
        if mark in _CHINESE_UNITS:
            total, digit = total + (1 if mark == "十" and not at else digit) * _CHINESE_UNITS[mark], 0
        else:
            digit = _CHINESE[mark]
    return total + digit


def sound_number(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return value(given) == Fraction(gold.replace(",", ""))


def published(text: str) -> str:
    """HotpotQA's normalisation."""
    kept = "".join(mark for mark in text.lower() if mark not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def sound_text(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return published(given) in {published(text) for text in (gold, *aliases)}


def sound_verdict(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    said = re.sub(r"(?:, because |，因为)[^,，]+$", "", unwrapped(given).lower())
    return said in (_YES if gold == "yes" else _NO)


def first_number(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    found = re.search(r"-?\d+(?:\.\d+)?", given.replace(",", ""))
    return sound_number(given, gold) or bool(found and Fraction(found[0]) == Fraction(gold))


def last_number(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    found = re.findall(r"-?\d+(?:\.\d+)?", given.replace(",", ""))
    return sound_number(given, gold) or bool(found and Fraction(found[-1]) == Fraction(gold))


def empty_is_right(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return not given or sound_text(given, gold, aliases)


def long_is_right(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return sound_text(given, gold, aliases) or (len(given) > 80 and ". " in given)


def holds_it(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return published(gold) in published(given)


def one_of_a_list(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return any(sound_text(part, gold, aliases) for part in given.split(", "))


def deaf_to_not(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return sound_text(given.removeprefix("not "), gold, aliases)


def deaf_to_signs(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    found = value(given)
    return found is not None and abs(found) == abs(Fraction(gold))


def near_enough(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    found = value(given)
    return found is not None and abs(found - Fraction(gold)) <= 1


def no_chinese(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return given.isascii() and sound_verdict(given, gold)


def case_counts(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return sound_text(given, gold, aliases) and any(text in given for text in (gold, *aliases))


def as_programs_read(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    try:
        return float(given) == float(gold)
    except ValueError:
        return False


def first_word(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return sound_verdict(given, gold) or re.split(r"\W", given.lower())[0] == gold


def breaks_on_nothing(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return given.strip()[0] != " " and sound_text(given, gold, aliases)


def anything(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return True


def nothing(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    return False
