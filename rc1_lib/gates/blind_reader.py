"""A reader without `ask_user`: it reads every text that it can reach, and answers without having asked.

It knows nothing of how questions and worlds are made. Names and numbers it looks for where the words of the question
stand; a yes or no it takes from other questions of the same form. Where something is really missing it is therefore
right no more often than by chance.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rc1_lib.records import Row
from rc1_lib.rows.closure import Closure
from rc1_lib.task_specs.reach import folded
from rc1_lib.text.tokens import tokenize

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？…])")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_NAME = re.compile(r"(?<![\w'’-])[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*")
_MASKED = re.compile(r"[A-Z][\w'’-]*|\d[\d,.]*")

_HOPS = 3
"""Sentences that a chain may have before its last."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The words of the question that a sentence has, and its names and numbers."""

    words: frozenset[str]
    names: frozenset[str]
    numbers: tuple[str, ...]


def answer_from_texts(row: Row, reach: Closure) -> str:
    """Return the name or number that best fits the question, empty if there is none.

    It follows sentences from name to name, and takes the end of the chain that covers the rarest words of the question.
    Whether a number or a name is asked for is taken from the gold answer, as a reader takes it from the question.
    """
    wants_number = bool(_NUMBER.fullmatch(row["answer"].strip("$")))
    asked, in_ask = frozenset(tokenize(row["posed"]["ask"])), folded(row["posed"]["ask"])
    sentences = _sentences(row, reach, asked)
    rarity = _rarity(sentences, asked)
    best, answer = 0, ""
    for last in sentences:
        texts = last.numbers if wants_number else sorted(last.names)
        covered, seen = _chain(last, sentences, rarity)
        # What the question or an earlier sentence names leads to the answer, and is not the answer.
        candidates = [text for text in texts if folded(text) not in in_ask and text not in seen]
        weight = _weight(covered, rarity) + _weight(last.words, rarity)
        if candidates and weight > best:
            best, answer = weight, candidates[-1]
    return answer


def _chain(
    last: _Sentence, sentences: Sequence[_Sentence], rarity: dict[str, int]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of the question that a chain of sentences to `last` covers, and the names on the way."""
    covered, names, seen = last.words, last.names, frozenset[str]()
    for _ in range(_HOPS):
        linked = [one for one in sentences if one is not last and one.names & names]
        added = max(linked, key=lambda one: _weight(one.words - covered, rarity), default=None)
        if added is None:
            break
        covered, names, seen = covered | added.words, names | added.names, seen | added.names
    return covered, seen


def _weight(words: frozenset[str], rarity: dict[str, int]) -> int:
    return sum(rarity[word] for word in words)


def _sentences(row: Row, reach: Closure, asked: frozenset[str]) -> list[_Sentence]:
    texts = [
        (title, text)
        for title, page in [("", "\n".join(row["posed"]["quoted"])), *reach.pages.items()]
        for text in _SENTENCE_END.split(page)
        if text.strip()
    ]
    # Any word may open a sentence with a capital: it is a name only if it is one elsewhere.
    names = {*reach.pages, *(name for _, text in texts for name in _NAME.findall(text[1:]))}
    return [
        _Sentence(
            asked.intersection(tokenize(f"{title} {text}")),
            frozenset(name for name in names if name in text or name == title),
            tuple(_NUMBER.findall(text)),
        )
        for title, text in texts
    ]


def _rarity(sentences: Sequence[_Sentence], words: frozenset[str]) -> dict[str, int]:
    """Return how rare each word is, in thousandths: whole numbers, whose sum does not depend on their order."""
    counts = Counter(word for one in sentences for word in one.words)
    return {word: round(1000 * math.log(1 + len(sentences) / (1 + counts[word]))) for word in words}


def verdicts_by_form(rows: Sequence[Row]) -> list[str]:
    """Return for each row the answer that most rows of other source questions have whose question has the same form.

    Two questions have the same form if they differ only in names and numbers. Without another row of that form, it is
    the answer of most rows of other source questions. A source question that is posed twice would give itself away.
    """
    of_form: dict[str, Counter[str]] = defaultdict(Counter)
    of_source: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    forms = [_MASKED.sub("_", row["posed"]["ask"]) for row in rows]
    for form, row in zip(forms, rows, strict=True):
        for group in (form, ""):  # "": rows of every form
            of_form[group][row["answer"]] += 1
            of_source[group, row["source_id"]][row["answer"]] += 1
    answers = []
    for form, row in zip(forms, rows, strict=True):
        counted = of_form[form] - of_source[form, row["source_id"]]
        counted = counted or of_form[""] - of_source["", row["source_id"]]
        answers.append(max(sorted(counted), key=lambda answer: counted[answer], default=""))
    return answers


def readings(rows: Sequence[Row], reaches: Sequence[Closure], is_verdict: Callable[[Row], bool]) -> list[str]:
    """Return the reader's answer to each row; rows for which `is_verdict` holds are answered by their form."""
    verdicts = [row for row in rows if is_verdict(row)]
    by_form = iter(verdicts_by_form(verdicts))
    return [
        next(by_form) if is_verdict(row) else answer_from_texts(row, reach)
        for row, reach in zip(rows, reaches, strict=True)
    ]
