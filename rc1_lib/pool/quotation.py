"""How much of its evidence a prompt quotes, set by the target clue overlap.

Clue overlap is the Jaccard similarity J of the word 3-grams of prompt and support. With S 3-grams in the support and A
others in the prompt, quoting a share q of the support gives about J = qS / (S + A), so that q = J (S + A) / S. A prompt
that quotes everything is diluted instead: sentences of distractor pages are added until A is large enough.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from rc1_lib.pool.templates import Template
from rc1_lib.records import Passage, Question
from rc1_lib.runtime.cache import of_short_texts
from rc1_lib.text.tokens import tokenize

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_MOST_OTHERS = 3


def quote(
    question: Question,
    template: Template,
    listed: Sequence[str],
    overlap: float,
    rng: random.Random,
    *,
    whole: bool,
    stated: str = "",
) -> list[str]:
    """Return the sentences that the prompt quotes, whole or cut, in order.

    Args:
        question: the question as posed, with anything withheld already removed.
        template: the words around the quotes.
        overlap: the target clue overlap.
        rng: this row's own generator.
        whole: whether to quote all supporting sentences, or only their beginnings.
        stated: a further supporting sentence, which the prompt quotes in any case.
    """
    around = (template.quote, template.lookup if listed else "", template.user, question.ask, *listed)
    others = sum(map(_words_in, around))
    support = [(sentence, _words_in(sentence)) for sentence in question.support]
    size = sum(max(0, length - 2) for _, length in support)
    shared = max(0, _words_in(stated) - 2) if stated else 0
    if whole:
        return _diluted(question, others, size + shared, overlap, rng)
    if not size:
        return []
    # Each cut quote loses the two 3-grams that span its end.
    wanted = overlap * (size + shared + others) - shared + 2 * len(support)
    share = min(0.9, max(0.0, wanted) / (size + 2 * len(support)))
    return [part for sentence, _ in support if (part := leading(sentence, share, question.lang))]


@of_short_texts(4096)  # a question is posed with every recipe, one after the other
def _words_in(text: str) -> int:
    return len(tokenize(text))


def _diluted(question: Question, others: int, size: int, overlap: float, rng: random.Random) -> list[str]:
    """Return all supporting sentences, with enough sentences of other pages to lower the overlap to the target."""
    quoted = list(question.support)
    twins = question.twin.steps if question.twin else ()
    needed = {step.argument for step in (*question.steps, *twins) if step.tool == "wiki"}
    needed |= {*question.slot.hides} if question.slot else set()
    other_pages = [first_sentence(page) for page in question.passages if page.title not in needed]
    rng.shuffle(other_pages)
    for sentence in other_pages[:_MOST_OTHERS]:
        if size / max(1, size + others) <= overlap:
            break
        quoted.insert(rng.randint(0, len(quoted)), sentence)
        others += _words_in(sentence)
    return quoted


def first_sentence(page: Passage) -> str:
    """Return the page's first sentence."""
    return _SENTENCE_END.split(page.text.strip(), maxsplit=1)[0]


def leading(sentence: str, share: float, lang: str) -> str:
    """Return the first `share` of a sentence's words (of its characters in Chinese), with "…" at the cut."""
    pieces: Sequence[str] = list(sentence) if lang == "zh" else sentence.split(" ")
    kept = round(share * len(pieces))
    if kept <= 0:
        return ""
    if kept >= len(pieces):
        return sentence
    return ("" if lang == "zh" else " ").join(pieces[:kept]).rstrip(",;，；") + "…"
