"""Gold answers, the form that they have, and the kinds of answers that are made from them.

A kind is one small function with a name and a sentence: `rc1_lib.answer_rules.spellings` has those that are right,
`rc1_lib.answer_rules.wrong_answers` those that are not.
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
    """What a task's gold answers are: all numbers, all yes or no, or else text."""

    NUMBER = "number"
    VERDICT = "verdict"
    TEXT = "text"


MOST_GOLDS = 200
"""Golds of a task that answers are made from: enough for an interval of half a per cent, few enough for seconds."""
GOLDS_SEED = 7
"""Of the draw of these golds."""
ALL = (Form.NUMBER, Form.VERDICT, Form.TEXT)
_NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?|[-+]?\.\d+")
_VERDICTS = frozenset({"yes", "no"})
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Gold:
    """One gold answer and the row that it is of.

    Attributes:
        answer: the exact answer.
        aliases: other texts that count as the same answer.
        question: the question; empty if unknown.
        page: the longest page of the row; empty if there is none.
        id: of the row; empty if it has none.
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
            raise ValueError(f"'{self.answer}' is no number")
        return value

    @property
    def whole(self) -> int | None:
        """The number, if it is a whole one."""
        return int(self.value) if self.value.denominator == 1 else None

    @property
    def opposite(self) -> str:
        """No for yes, and yes for no."""
        return "no" if self.answer.strip().lower() == "yes" else "yes"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of answers.

    Attributes:
        name: as reports call it.
        sentence: what it does, for people.
        forms: the forms of golds that it is for.
        make: the answer, from a gold and the other golds of the task; None if it does not apply.
        never: the name of a check that fails on a single accepted answer of this kind; empty if a share decides.
    """

    name: str
    sentence: str
    forms: tuple[Form, ...]
    make: Callable[[Gold, Sequence[Gold]], str | None]
    never: str = ""


def number(text: str) -> Fraction | None:
    """The number that a plain decimal text is, thousands commas allowed; None for any other text."""
    plain = text.strip()
    return Fraction(plain.replace(",", "")) if _NUMBER.fullmatch(plain) else None


def decimal(value: Fraction) -> str:
    """A number as a decimal text without an exponent. Raises ValueError if no finite one is exact."""
    for places in range(40):
        if (value * 10**places).denominator == 1:
            digits = f"{abs(value.numerator * 10**places // value.denominator):0{places + 1}d}"
            sign = "-" if value < 0 else ""
            return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"
    raise ValueError(f"{value} has no finite decimal")


def form_of(answers: Sequence[str]) -> Form:
    """The form of golds: a single one that is no number or verdict makes all of them text."""
    if all(number(answer) is not None for answer in answers):
        return Form.NUMBER
    return Form.VERDICT if all(answer.strip().lower() in _VERDICTS for answer in answers) else Form.TEXT


def normalised(text: str) -> str:
    """As Yang et al., "HotpotQA" (2018), compare: lower case, no ASCII punctuation, no articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def same(given: str, gold: Gold, form: Form) -> bool:
    """Whether a generated answer may be right after all, by the widest reading: no such one is called wrong.

    Letters and digits alone are compared, of numbers that are plainly written the value.
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
        form: of all golds of the task.
        distinct: how many different ones there are.
        golds: those drawn.
    """

    form: Form
    distinct: int
    golds: tuple[Gold, ...]


def sample(golds: Sequence[Gold], most: int = MOST_GOLDS, seed: int = GOLDS_SEED) -> Sample:
    """At most `most` different golds, spread evenly."""
    first: dict[str, Gold] = {}
    for gold in golds:
        first.setdefault(gold.answer, gold)
    form, count, at = spread(list(first), most, seed)
    known = list(first.values())
    return Sample(form, count, tuple(known[place] for place in at))


def spread(answers: Sequence[str], most: int = MOST_GOLDS, seed: int = GOLDS_SEED) -> tuple[Form, int, list[int]]:
    """The form of different answers, how many can be used, and positions of at most `most` of these.

    They are spread evenly from the smallest to the largest, numbers by value and texts by length, so that rare ones
    (negative, with decimals, very long) have their share: one of each of `most` equal parts of this order is drawn.
    Answers of which the published normalisation leaves nothing, such as `!!!`, are not used: a rule that deletes
    punctuation cannot tell them from an empty one.
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
    """A gold from its text, or from a mapping with `answer` and optionally `aliases`, `question`, `page`, `id`.

    Raises:
        ValueError: for anything else, saying what was found.
    """
    if isinstance(given, str):
        given = {"answer": given}
    if not isinstance(given, Mapping) or "answer" not in given:
        raise ValueError(f"found {str(given)[:60]!r}, expected the text of an answer, or an object with `answer`")
    if not isinstance(given["answer"], str):
        raise ValueError(f"`answer` is {given['answer']!r}, expected text: write a number as '72'")
    aliases = given.get("aliases") or ()
    if not isinstance(aliases, list | tuple) or not all(isinstance(alias, str) for alias in aliases):
        raise ValueError(f"`aliases` is {aliases!r}, expected a list of texts")
    further = {name: given.get(name) or "" for name in ("question", "page", "id")}
    for name, text in further.items():
        if not isinstance(text, str):
            raise ValueError(f"`{name}` is {text!r}, expected text")
    return Gold(given["answer"], tuple(aliases), **further)
