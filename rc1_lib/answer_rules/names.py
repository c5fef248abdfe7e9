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
_SIGN_OR_POINT = re.compile(r"(?<![^\W_])-(?=\$?[\d.])|(?<![^\W\d_])\.(?=\d)|(?<=\d)/(?=\d)")
_ALL_OR_NOTHING = {"yes", "no", "noanswer"}
"""Answers that get no credit for shared tokens, as in HotpotQA's evaluation."""


def normalise_name(text: str) -> str:
    """Return the name in lower case, without ASCII punctuation and articles, with single spaces; may be empty."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def same_name(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` is `gold` or one of its aliases after `normalise_name`.

    This differs from the published rule in two ways. An answer without a letter or digit is never right, even if
    nothing is left of the gold answer ("A", "!!!"). If the gold answer is a whole number, or in Chinese, for which
    nothing is published, all other punctuation and the width of letters are ignored, but signs and decimal points
    count, and of a number fractions: "-12", "1.2" and "1/2" are not 12, and "12。" is.
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
    number = _WHOLE_NUMBER.fullmatch(gold) is not None
    if not number and not _ANY_HAN.search(gold):
        return normalise_name(given) == normalise_name(gold)
    return _marks(given, number) == _marks(gold, number) and _wide_name(given) == _wide_name(gold)


def _marks(text: str, number: bool) -> list[str]:
    """Return signs and decimal points, and fractions of a number; between the parts of a date a slash is a hyphen."""
    wide = unicodedata.normalize("NFKC", text)
    return _SIGN_OR_POINT.findall(wide if number else wide.replace("/", " "))


def _wide_name(text: str) -> str:
    wide = unicodedata.normalize("NFKC", text)
    return normalise_name("".join(mark for mark in wide if not unicodedata.category(mark).startswith("P")))


def _f1(given: str, gold: str) -> float:
    if given != gold and (given in _ALL_OR_NOTHING or gold in _ALL_OR_NOTHING):
        return 0.0
    found, wanted = _TOKEN.findall(given), _TOKEN.findall(gold)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted)) if shared else 0.0
