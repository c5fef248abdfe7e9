"""HotpotQA, in the original form or in Hugging Face's columns: supporting pages first, then the distractors."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from rc1_lib.answer_rules import same_name
from rc1_lib.errors import SourceError
from rc1_lib.records import Passage, Question, Step
from rc1_lib.task_specs import record_fields
from rc1_lib.task_specs.spec import TaskSpec, UnusableRecord
from rc1_lib.task_specs.withheld_name import name_slot
from rc1_lib.task_specs.wording import content_words, tidy


def parse(record: Mapping[str, Any], index: int, origin: str) -> Question:
    """Convert a HotpotQA record to a Question.

    Two forms are read: `supporting_facts [[title, sentence number]]` with `context [[title, [sentence]]]`, and the
    columns `supporting_facts {title, sent_id}` with `context {title, sentences}`.

    Args:
        index: its number within `origin`, from 0.
        origin: the short name of its source; it becomes part of the id.

    Raises:
        SourceError: a key is missing or of another type.
        UnusableRecord: a supporting sentence is not in the context, or question, answer or support is empty.
    """
    ask, answer = record_fields.question(record), tidy(record_fields.text(record, "answer"))
    if not ask or not answer:
        raise UnusableRecord("empty question or answer")
    pages = _pages(record_fields.required(record, "context"))
    support = _support(record_fields.required(record, "supporting_facts"), pages, ask)
    titles = [*support, *(title for title in pages if title not in support)]
    passages = [Passage(title, tidy(" ".join(pages[title]))) for title in titles]
    # The user's reply must not be the answer or a part of it ("Which is older, A or B?" with A withheld).
    nameable = [title for title in support if not content_words(title) & content_words(answer)]
    slot, kept = name_slot(nameable, ask, passages, support, answer)
    return Question(
        id=f"hotpotqa/{origin}/{index}",
        task="hotpotqa",
        source="hotpotqa",
        lang="en",
        ask=ask,
        support=tuple(tidy(pages[title][at]) for title, numbers in support.items() for at in numbers),
        passages=tuple(passages),
        steps=tuple(Step("wiki", page.title, page.text) for page in passages[: len(support)]),
        answer=answer,
        slot=slot,
        kept=kept,
    )


def _pages(context: object) -> dict[str, list[str]]:
    """Return sentences by title, in the record's order, without empty pages; of two with one title the first counts."""
    pages: dict[str, list[str]] = {}
    for title, sentences in _pairs(context, "context", "sentences"):
        pages.setdefault(tidy(title), record_fields.text_list(sentences, "context"))
    return {title: sentences for title, sentences in pages.items() if title and tidy(" ".join(sentences))}


def _support(facts: object, pages: Mapping[str, list[str]], ask: str) -> dict[str, list[int]]:
    """Return sentence numbers in reading order by supporting title; the title that starts the chain comes first."""
    support: dict[str, set[int]] = {}
    for title, number in _pairs(facts, "supporting_facts", "sent_id"):
        if not isinstance(number, int) or isinstance(number, bool):
            raise record_fields.wrong_type("supporting_facts", number, "the number of a sentence")
        page = pages.get(tidy(title))
        if page is None:
            raise UnusableRecord("supporting title not in context")
        if not 0 <= number < len(page) or not page[number].strip():
            raise UnusableRecord("supporting sentence not in context")
        support.setdefault(tidy(title), set()).add(number)
    if not support:
        raise UnusableRecord("no supporting facts")
    found = {title: ask.find(title) for title in support}
    order = sorted(support, key=lambda title: found[title] if found[title] >= 0 else len(ask))
    return {title: sorted(support[title]) for title in order}


def _pairs(value: object, key: str, second: str) -> list[tuple[str, Any]]:
    """Return (title, other) pairs from either form; `second` names the other column."""
    if isinstance(value, Mapping):
        titles = record_fields.texts(value, "title")
        others = record_fields.sequence(record_fields.required(value, second), f"{key}.{second}")
        if len(titles) != len(others):
            raise SourceError(f"'{key}' has {len(titles)} titles but {len(others)} {second}; expected as many of each.")
        return list(zip(titles, others, strict=True))
    pairs = []
    for pair in record_fields.sequence(value, key):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise record_fields.wrong_type(key, pair, "pairs that start with a title")
        pairs.append((pair[0], pair[1]))
    return pairs


def guess_title(question: Question, rng: random.Random) -> str:
    """Return a page's title other than the answer, as a guess without evidence."""
    titles = [passage.title for passage in question.passages if passage.title != question.answer]
    return rng.choice(titles) if titles else "unknown"


SPEC = TaskSpec(
    name="hotpotqa",
    label="HotpotQA",
    template_kind="multihop",
    parse=parse,
    is_right=same_name,
    guess=guess_title,
    multi_hop=True,
    hub_config="distractor",
)
