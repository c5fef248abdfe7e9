"""Gold answers, their form, and the kinds of answers made from them.

A kind is a small function with a name and a sentence: `rc1_lib.answer_rules.spellings` has the right ones,
`rc1_lib.answer_rules.wrong_answers` the wrong ones.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise


class Form(StrEnum):
    """The form of a task's gold answers: all numbers, all yes or no, or else text."""

    NUMBER = "number"
    VERDICT = "verdict"
    TEXT = "text"


MOST_GOLDS = 200
"""Golds of a task to make answers from: enough for an interval of half a per cent, few enough for seconds."""
GOLDS_SEED = 7
"""Seed of the draw of these golds."""
ALL = (Form.NUMBER, Form.VERDICT, Form.TEXT)
_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?|[-+]?\.\d+")
_LONGEST = 300
"""Characters of the longest number: a float ends at 308 digits, and Python parses at most 4,300."""
_VERDICTS = frozenset({"yes", "no"})
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Gold:
    """One gold answer with its row.

    Attributes:
        aliases: other texts that count as the same answer.
        question: the question; empty if unknown.
        page: the longest page of the row; empty if there is none.
        id: the row's id; empty if it has none.
    """

    answer: str
    aliases: tuple[str, ...] = ()
    question: str = ""
    page: str = ""
    id: str = ""

    @property
    def value(self) -> Fraction:
        """The answer as a number. Raises ValueError if it is not one."""
        value = number(self.answer)
        if value is None:
            raise ValueError(f"'{self.answer}' is not a number")
        return value

    @property
    def whole(self) -> int | None:
        """The number as an int; None if it is not whole."""
        return int(self.value) if self.value.denominator == 1 else None

    @property
    def opposite(self) -> str:
        """`no` for yes, and `yes` for no."""
        return "no" if self.answer.strip().lower() == "yes" else "yes"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of answers.

    Attributes:
        sentence: what it does, for people.
        forms: the forms of golds that it applies to.
        make: makes the answer from a gold and the other golds of the task; None if it does not apply.
        never: the name of a check that fails on a single accepted answer of this kind; empty if a share decides.
    """

    name: str
    sentence: str
    forms: tuple[Form, ...]
    make: Callable[[Gold, Sequence[Gold]], str | None]
    never: str = ""


def number(text: str) -> Fraction | None:
    """Parse a plain decimal, with or without thousands commas; None for other text and above 300 characters."""
    plain = text.strip()
    return Fraction(plain.replace(",", "")) if len(plain) <= _LONGEST and _NUMBER.fullmatch(plain) else None


def decimal(value: Fraction) -> str:
    """Format a number as a decimal text without an exponent. Raises ValueError if no finite one is exact."""
    for places in range(40):
        if (value * 10**places).denominator == 1:
            digits = f"{abs(value.numerator * 10**places // value.denominator):0{places + 1}d}"
            sign = "-" if value < 0 else ""
            return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
    raise ValueError(f"{value} has no finite decimal")


def form_of(answers: Sequence[str]) -> Form:
    """Return the form of golds: text if any of them is neither a number nor a verdict."""
    if all(number(answer) is not None for answer in answers):
        return Form.NUMBER
    return Form.VERDICT if all(answer.strip().lower() in _VERDICTS for answer in answers) else Form.TEXT


def normalised(text: str) -> str:
    """Normalise as Yang et al., "HotpotQA" (2018): lower case, no ASCII punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def same(given: str, gold: Gold, form: Form) -> bool:
    """Whether a generated answer may be right after all, by the widest reading; such answers are never tested as wrong.

    Numbers in plain decimals are compared by value, other texts by letters and digits only.
    """
    if form is Form.NUMBER:
        return number(given) == gold.value
    return bool(given.strip()) and _letters(given) in {_letters(text) for text in (gold.answer, *gold.aliases)}


@lru_cache(maxsize=8192)
def _letters(text: str) -> str:
    return "".join(mark for mark in _ARTICLES.sub(" ", text.casefold()) if mark.isalnum())


@dataclass(frozen=True, slots=True)
class Sample:
    """Gold answers of one task to make answers from.

    Attributes:
        distinct: number of different golds.
    """

    form: Form
    distinct: int
    golds: tuple[Gold, ...]


def sample(golds: Sequence[Gold], most: int = MOST_GOLDS, seed: int = GOLDS_SEED) -> Sample:
    """Draw at most `most` different golds, spread evenly."""
    first: dict[str, Gold] = {}
    for gold in golds:
        first.setdefault(gold.answer, gold)
    form, count, at = spread(list(first), most, seed)
    known = list(first.values())
    return Sample(form, count, tuple(known[place] for place in at))


def spread(answers: Sequence[str], most: int = MOST_GOLDS, seed: int = GOLDS_SEED) -> tuple[Form, int, list[int]]:
    """Return the form of different answers, how many are usable, and positions of at most `most` of these.

    Answers are sorted, numbers by value and texts by length, and one is drawn from each of `most` equal parts of this
    order, so that rare ones (negative, with decimals, very long) are included. Answers that the published normalisation
    empties, such as `!!!`, are not used: a rule that deletes punctuation cannot tell them from an empty answer.
    """
    form = form_of(answers)
    order = [at for at, answer in enumerate(answers) if normalised(answer)]
    if form is Form.NUMBER:
        order.sort(key=lambda at: (number(answers[at]), answers[at]))
    else:
        order.sort(key=lambda at: (len(answers[at]), answers[at]))
    if len(order) <= most:
        return form, len(order), order
    rng = random.Random(seed)
    edges = [len(order) * part // most for part in range(most + 1)]
    return form, len(order), [order[rng.randrange(low, high)] for low, high in pairwise(edges)]


def gold_of(given: object) -> Gold:
    """Build a gold from its text, or from a mapping with `answer` and optionally `aliases`, `question`, `page`, `id`.

    Raises:
        ValueError: for anything else; it says what was found.
    """
    if isinstance(given, str):
        given = {"answer": given}
    if not isinstance(given, Mapping) or "answer" not in given:
        raise ValueError(f"found {str(given)[:60]!r}, expected the text of an answer, or an object with `answer`")
    if not isinstance(given["answer"], str):
        raise ValueError(f"`answer` is {given['answer']!r}, expected text: write a number as '72'")
    if not given["answer"].strip():
        raise ValueError("`answer` is empty, expected the text of an answer")
    aliases = given.get("aliases") or ()
    if not isinstance(aliases, list | tuple) or not all(isinstance(alias, str) for alias in aliases):
        raise ValueError(f"`aliases` is {aliases!r}, expected a list of texts")
    further = {name: given.get(name) or "" for name in ("question", "page", "id")}
    for name, text in further.items():
        if not isinstance(text, str):
            raise ValueError(f"`{name}` is {text!r}, expected text")
    return Gold(given["answer"], tuple(aliases), **further)
