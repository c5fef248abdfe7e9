"""MuSiQue's format as a task: composed questions, each part of which one paragraph answers.

A record of the public files has `id`, `paragraphs [{idx, title, paragraph_text, is_supporting}]`, `question`,
`question_decomposition [{id, question, answer, paragraph_support_idx}]`, in which `#1` means the first answer,
`answer`, `answer_aliases` and `answerable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rc1_lib.answer_rules import same_name
from rc1_lib.errors import SourceError
from rc1_lib.records import Passage, Question, Step
from rc1_lib.task_specs import TaskSpec, record_fields
from rc1_lib.task_specs.hotpotqa import guess_title
from rc1_lib.task_specs.spec import UnusableRecord
from rc1_lib.task_specs.withheld_name import name_slot
from rc1_lib.task_specs.wording import sentences, tidy


def parse(record: Mapping[str, Any], index: int, origin: str) -> Question:
    """One MuSiQue record as a Question: a step of the decomposition looks up the paragraph that answers it."""
    ask, answer = tidy(record_fields.text(record, "question")), tidy(record_fields.text(record, "answer"))
    if record_fields.required(record, "answerable") is not True:
        raise UnusableRecord("not answerable")
    paragraphs = {part["idx"]: part for part in _mappings(record, "paragraphs", "idx", "title", "paragraph_text")}
    hops = _mappings(record, "question_decomposition", "question", "answer", "paragraph_support_idx")
    places = [hop["paragraph_support_idx"] for hop in hops]
    if not places or not all(place in paragraphs for place in places):
        raise UnusableRecord("decomposition without a paragraph")
    order = dict.fromkeys([*places, *paragraphs])
    pages: dict[str, list[str]] = {}
    for place in order:
        pages.setdefault(tidy(paragraphs[place]["title"]), []).append(tidy(paragraphs[place]["paragraph_text"]))
    passages = tuple(Passage(title, " ".join(texts)) for title, texts in pages.items())
    needed = list(dict.fromkeys(tidy(paragraphs[place]["title"]) for place in places))
    nameable = [title for title in needed if title.casefold() not in answer.casefold()]
    slot, kept = name_slot(nameable, ask, passages, needed, answer)
    return Question(
        id=f"musique/{origin}/{index}",
        task="musique",
        source="musique",
        lang="en",
        ask=ask,
        support=tuple(_sentence(paragraphs[hop["paragraph_support_idx"]], hop["answer"]) for hop in hops),
        passages=passages,
        steps=tuple(Step("wiki", page.title, page.text) for page in passages[: len(needed)]),
        answer=answer,
        aliases=tuple(record_fields.texts(record, "answer_aliases")),
        slot=slot,
        kept=kept,
    )


def _mappings(record: Mapping[str, Any], key: str, *keys: str) -> Sequence[Mapping[str, Any]]:
    """The list of objects under `key`, each with all of `keys`."""
    parts = record_fields.sequence(record_fields.required(record, key), key)
    for part in parts:
        if not isinstance(part, Mapping) or not set(keys) <= set(part):
            raise SourceError(f"the key '{key}' holds {part!r:.60}; expected objects with {', '.join(keys)}.")
    return parts


def _sentence(paragraph: Mapping[str, Any], answer: str) -> str:
    """The first sentence that contains the answer of the hop, or the whole paragraph if none does."""
    text = tidy(paragraph["paragraph_text"])
    return next((sentence for sentence in sentences(text) if tidy(answer) in sentence), text)


SPEC = TaskSpec(
    name="musique",
    label="MuSiQue",
    template_kind="composed",
    parse=parse,
    is_right=same_name,
    guess=guess_title,
    multi_hop=True,
)
