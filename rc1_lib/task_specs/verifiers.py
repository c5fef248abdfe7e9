"""Whether an answer is right: the rules that tasks choose from.

`same_number`: numeric equality. `same_text`: exact match, aliases included, after the normalisation of Yang et al.,
"HotpotQA" (2018): lower case, no punctuation, no articles, single spaces. `same_verdict`: yes or no.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?|[-+]?\.\d+")
_YES = {"yes", "true", "是", "对", "能", "会"}
_NO = {"no", "false", "否", "不", "不是", "不对", "不能", "不会"}


def normalise_answer(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces."""
    kept = "".join(" " if unicodedata.category(mark).startswith("P") else mark for mark in text.lower())
    return " ".join(_ARTICLES.sub(" ", kept).split())


def same_number(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether the first number of `given` equals that of `gold`; aliases are other spellings of it and add nothing."""
    number = _as_number(given)
    return number is not None and number == _as_number(gold)


def same_verdict(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` opens with the same yes or no as `gold`, in either language; aliases add nothing."""
    verdict = _as_verdict(given)
    return verdict is not None and verdict == _as_verdict(gold)


def same_text(given: str, gold: str, aliases: Sequence[str] = ()) -> bool:
    """Whether `given` is `gold` or one of its aliases after normalisation."""
    return given == gold or normalise_answer(given) in {normalise_answer(text) for text in (gold, *aliases)}


def _as_number(text: str) -> Decimal | None:
    found = _NUMBER.search(text.replace("，", ","))
    if found is None:
        return None
    try:
        return Decimal(found.group().replace(",", ""))
    except InvalidOperation:
        return None


def _as_verdict(text: str) -> bool | None:
    word = normalise_answer(text).split(" ")[0]
    return True if word in _YES else False if word in _NO else None
