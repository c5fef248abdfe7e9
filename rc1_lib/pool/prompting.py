"""How a question is posed to the assistant: template, quotes, withheld piece and listed pages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rc1_lib.pool.quotation import quote
from rc1_lib.pool.templates import Template
from rc1_lib.records import Bucket, Passage, Question, Slot

QUOTED_WHOLE: Bucket = "easy"
"""The bucket whose prompts quote all supporting sentences, so that no page must be read; others quote beginnings."""
DISTRACTORS: dict[Bucket, tuple[int, int]] = {"easy": (0, 0), "medium": (0, 2), "hard": (2, 5)}
"""Bucket -> fewest and most distractor pages that a prompt lists."""


@dataclass(frozen=True, slots=True)
class Posed:
    """A question as the user poses it.

    Attributes:
        user: the user's message.
        system: the system message.
        question: the question, with anything withheld removed from `ask`, `support` and `passages`.
        quoted: the quoted evidence, sentence by sentence, whole or cut.
        listed: titles of the pages that the message lists, in this order.
        needs: whether something was withheld.
        cue: whether the wording is vague.
        complete: whether the message quotes all the evidence, so that nothing has to be looked up.
    """

    user: str
    system: str
    question: Question
    quoted: tuple[str, ...]
    listed: tuple[str, ...]
    needs: bool
    cue: bool
    complete: bool


def pose(
    question: Question,
    template: Template,
    bucket: Bucket,
    overlap: float,
    *,
    withhold: bool,
    cue: bool,
    rng: random.Random,
) -> Posed:
    """Word `question` with `template`, as hard as `bucket` says; `overlap` is the target clue overlap."""
    slot = question.slot if withhold else None
    reduced = take_out(question, slot) if slot else question
    complete = bucket == QUOTED_WHOLE
    listed = () if complete else _pages_to_list(question, bucket, rng)
    quoted = quote(reduced, template, listed, overlap, rng, whole=complete)
    if slot and slot.where == "ask":
        quoted = [replace_word(text, slot, question.lang) for text in quoted]
    user = user_message(template, quoted, listed, reduced.ask, question.lang)
    return Posed(user, template.system, reduced, tuple(quoted), listed, slot is not None, cue, complete)


def user_message(template: Template, quoted: Sequence[str], listed: Sequence[str], ask: str, lang: str) -> str:
    """Return the user's message: quoted evidence, pages to look up and question, in the template's words."""
    gap, comma = ("", "、") if lang == "zh" else (" ", ", ")
    parts = [template.quote.format(evidence=gap.join(quoted))] if any(quoted) else []
    if listed:
        parts.append(template.lookup.format(titles=comma.join(listed)))
    return gap.join([*parts, template.user.format(question=ask)])


def _pages_to_list(question: Question, bucket: Bucket, rng: random.Random) -> tuple[str, ...]:
    """Return the needed pages and some distractors, shuffled so that the list does not reveal the solution."""
    needed = list(dict.fromkeys(step.argument for step in question.steps if step.tool == "wiki"))
    others = [passage.title for passage in question.passages if passage.title not in needed]
    extra = rng.sample(others, min(len(others), rng.randint(*DISTRACTORS[bucket])))
    titles = needed + extra
    rng.shuffle(titles)
    return tuple(titles)


def take_out(question: Question, slot: Slot) -> Question:
    """Return the question with the slot's value replaced by its vague wording, in the question or in its story."""
    if slot.where == "ask":
        return replace(question, ask=replace_word(question.ask, slot, question.lang))
    return replace(
        question,
        support=tuple(replace_word(sentence, slot, question.lang) for sentence in question.support),
        passages=tuple(
            Passage(passage.title, replace_word(passage.text, slot, question.lang)) for passage in question.passages
        ),
    )


def replace_word(text: str, slot: Slot, lang: str) -> str:
    """Replace every whole-word occurrence of the slot's value in `text` by its vague wording."""
    parts, done = [], 0
    at = text.find(slot.value) if slot.value else -1
    while at >= 0:
        after = at + len(slot.value)
        if lang == "zh" or not (_is_word(text[max(0, at - 1) : at]) or _is_word(text[after : after + 1])):
            starts_sentence = at == 0 or text[:at].rstrip().endswith((".", "!", "?"))
            vague = slot.vague[:1].upper() + slot.vague[1:] if starts_sentence else slot.vague
            parts += [text[done:at], vague]
            done = after
        at = text.find(slot.value, max(done, at + 1))
    return "".join([*parts, text[done:]])


def _is_word(mark: str) -> bool:
    return mark.isalnum() or mark == "_"
