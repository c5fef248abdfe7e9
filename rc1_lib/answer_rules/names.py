"""Names and other words, compared exactly as in HotpotQA's published evaluation.

Yang et al., "HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering" (2018): lower case, ASCII
punctuation deleted, articles removed, white space collapsed. Exact match is `same_name`, F1 is `name_f1`.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Sequence

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ANY_HAN = re.compile(f"[{_HAN}]")
_TOKEN = re.compile(rf"[{_HAN}]|[^\s{_HAN}]+")
_WHOLE_NUMBER = re.compile(r"\s*[-+$]*\d[\d,]*\s*")
_SIGN_OR_POINT = r"(?<![^\W_])-(?=\$?[\d.])|(?<![^\W\d_])\.(?=\d)"
_OF_NUMBERS = re.compile(rf"{_SIGN_OR_POINT}|(?<=\d)/(?=\d)")
_OF_CHINESE = re.compile(rf"{_SIGN_OR_POINT}|(?<=\d)[^\w\s,](?=\d)")
"""Marks that change a value: signs, decimal points, and fractions; in Chinese any mark between digits but a comma."""
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_HALF_WIDTH = str.maketrans({mark: mark - 0xFEE0 for mark in range(0xFF01, 0xFF5F)})
_MARKS_AT_ENDS = "。，、；：！？ 　"
_ALL_OR_NOTHING = {"yes", "no", "noanswer"}
"""Answers that get no credit for shared tokens, as in HotpotQA's evaluation."""


def normalise_name(text: str) -> str:
    """Return the name in lower case, without ASCII punctuation and articles, with single spaces; may be empty."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def same_name(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` is `gold` or one of its aliases after `normalise_name`.

    This differs from the published rule in two ways. An answer without a letter or digit is never right, even if
    nothing is left of the gold answer ("A", "!!!"). If the gold answer is a whole number, the width of digits and
    Chinese marks at the ends are ignored; if it is in Chinese, for which nothing is published, all punctuation and the
    width of letters. But signs, decimal points and fractions count: "-12", "1.2" and "1/2" are not 12, and "12。" is.
    """
    return any(_same(given, accepted) for accepted in (gold, *aliases))


def name_f1(given: str, gold: str, aliases: Sequence[str] = ()) -> float:
    """Compute token F1 after `normalise_name`, of the gold answer or alias that fits best; a Han character is a token.

    Returns:
        From 0 to 1. Only `configs/train_local.yaml` pays it, where a row names no task.
    """
    return max(_f1(normalise_name(given), normalise_name(accepted)) for accepted in (gold, *aliases))


def _same(given: str, gold: str) -> bool:
    if not any(mark.isalnum() for mark in given):
        return False
    if _WHOLE_NUMBER.fullmatch(gold):
        said = given.translate(_HALF_WIDTH).strip(_MARKS_AT_ENDS)
        alike = normalise_name(said) == normalise_name(gold)
        return alike and _OF_NUMBERS.findall(said) == _OF_NUMBERS.findall(gold)
    if _ANY_HAN.search(gold):
        return _han_name(given) == _han_name(gold) and _marks(given) == _marks(gold)
    return normalise_name(given) == normalise_name(gold)


def _marks(text: str) -> list[bool]:
    """Return for each mark of a Chinese text that changes a value whether it is a decimal point."""
    wide = unicodedata.normalize("NFKC", text).translate(_DASHES)
    return [mark == "." for mark in _OF_CHINESE.findall(wide)]


def _han_name(text: str) -> str:
    wide = unicodedata.normalize("NFKC", text)
    return normalise_name("".join(mark for mark in wide if not unicodedata.category(mark).startswith("P")))


def _f1(given: str, gold: str) -> float:
    if given != gold and (given in _ALL_OR_NOTHING or gold in _ALL_OR_NOTHING):
        return 0.0
    found, wanted = _TOKEN.findall(given), _TOKEN.findall(gold)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted)) if shared else 0.0
