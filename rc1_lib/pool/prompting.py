"""How a question is posed to the assistant: template, quotes, withheld piece and listed pages."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rc1_lib.pool.quotation import quote
from rc1_lib.pool.templates import Template
from rc1_lib.records import Bucket, Passage, Question, Slot
from rc1_lib.task_specs.withheld_name import bare_name, names_it

QUOTED_WHOLE: Bucket = "easy"
"""The bucket whose prompts quote all supporting sentences, so that no page must be read; others quote beginnings."""
DISTRACTORS: dict[Bucket, tuple[int, int]] = {"easy": (0, 0), "medium": (0, 2), "hard": (2, 5)}
"""Bucket -> fewest and most distractor pages that a prompt lists."""


How = Literal["complete", "decoy", "unique", "stated", "gone", "ambiguous"]
"""What is done to a question. `decoy`, `unique` and `stated` only sound incomplete: a gap that does not matter, a name
that is withheld although its description fits one thing only, or a piece that one sentence withholds and another
states. The last two are the ways in which a piece is missing."""


@dataclass(frozen=True, slots=True)
class Posed:
    """A question as the user poses it.

    Attributes:
        user: the user's message.
        question: the question with what was done to its `ask`, `support` and `passages`.
        how: what was done to it.
        slot: what is missing; None if nothing is.
        quoted: the quoted evidence, sentence by sentence, whole or cut.
        listed: titles of the pages that the message lists, in this order.
        cue: whether the template's wording is vague.
        complete: whether the message quotes all the evidence that can be reached, so that no such page must be read.
    """

    user: str
    system: str
    question: Question
    how: How
    slot: Slot | None
    quoted: tuple[str, ...]
    listed: tuple[str, ...]
    cue: bool
    complete: bool

    @property
    def needs(self) -> bool:
        """Whether something is missing."""
        return self.slot is not None

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Titles that the message does not list: only the withheld piece leads to them, wherever it is stated."""
        return kept_back(self.question, self.how)


def pose(
    question: Question, template: Template, bucket: Bucket, overlap: float, *, how: How, cue: bool, rng: random.Random
) -> Posed:
    """Word `question` with `template`, as hard as `bucket` says; `overlap` is the target clue overlap."""
    slot = missing_slot(question, how)
    reduced = posed_as(question, how)
    complete = bucket == QUOTED_WHOLE
    listed = () if complete else _pages_to_list(reduced, how, bucket, rng)
    stated = reduced.support[-1] if how == "stated" else ""
    withheld = question.slot if stated and kept_back(question, how) else slot
    apart = replace(reduced, support=reduced.support[:-1]) if stated else reduced
    quoted = quote(_quotable(apart, withheld), template, listed, overlap, rng, whole=complete, stated=stated)
    if stated:
        quoted.insert(rng.randint(0, len(quoted)), stated)
    if slot and slot.where == "ask" and how == "gone":
        quoted = [replace_word(text, slot, question.lang) for text in quoted]
    if complete and how == "decoy" and question.decoy:
        quoted.insert(rng.randint(0, len(quoted)), question.decoy.vague)
    user = user_message(template, quoted, listed, reduced.ask, question.lang)
    return Posed(user, template.system, reduced, how, slot, tuple(quoted), listed, cue, complete)


def _quotable(question: Question, slot: Slot | None) -> Question:
    """Return the question without the evidence that gives a withheld name away: its own pages', and what names it."""
    if slot is None or slot.where != "ask" or slot.way != "gone":
        return question
    # A sentence may name it in another spelling than the question does, at its beginning for example.
    hidden = [page.text for page in question.passages if page.title in slot.hides]
    seen = [text for text in question.support if not any(text in page for page in hidden)]
    return replace(question, support=tuple(text for text in seen if not names_it(bare_name(slot.value), text)))


def missing_slot(question: Question, how: How) -> Slot | None:
    """Return what is missing from a question that is posed in this way; None if nothing is."""
    if how == "ambiguous" and question.twin:
        return question.twin.slot
    return question.slot if how == "gone" else None


def may_be_stated(question: Question) -> bool:
    """Whether a question can be posed as `stated`: only where its source has no way of its own to sound incomplete.

    A statement in the words of the question itself ("how many stamps") would read as its answer.
    """
    slot = question.slot
    if slot is None or question.twin or question.decoy or question.lang != "en":
        return False
    return slot.wanted.casefold() not in question.ask.casefold()


def kept_back(question: Question, how: How) -> tuple[str, ...]:
    """Return the titles that a message neither lists nor quotes, since they would give a missing piece away.

    For a quarter of the questions they are kept back where the piece is stated, too, so that little evidence does not
    always mean that something is missing. For more of them, sources of which everything can be withheld would have too
    few rows that quote their evidence.
    """
    missing = missing_slot(question, how)
    if how == "stated" and zlib.crc32(f"{question.id}/evidence".encode()) % 4 == 0:
        missing = question.slot
    return missing.hides if missing else ()


def statement(slot: Slot, question_id: str) -> str:
    """Return the sentence by which a user states a piece that an English question leaves out."""
    value = slot.value.removesuffix(".")
    if zlib.crc32(question_id.encode()) % 2:
        return f"As for {slot.wanted}, it is {value}."
    return f"{slot.wanted[:1].upper()}{slot.wanted[1:]}: {value}."


def user_message(template: Template, quoted: Sequence[str], listed: Sequence[str], ask: str, lang: str) -> str:
    """Return the user's message: quoted evidence, pages to look up and question, in the template's words."""
    gap, comma = ("", "、") if lang == "zh" else (" ", ", ")
    parts = [template.quote.format(evidence=gap.join(quoted))] if any(quoted) else []
    if listed:
        parts.append(template.lookup.format(titles=comma.join(listed)))
    return gap.join([*parts, template.user.format(question=ask)])


def _pages_to_list(question: Question, how: How, bucket: Bucket, rng: random.Random) -> tuple[str, ...]:
    """Return the needed pages and some distractors, shuffled so that the list does not reveal the solution."""
    hidden = kept_back(question, how)
    twins = [step.argument for step in question.twin.steps] if how == "ambiguous" and question.twin else []
    pages = [page.title for page in question.passages if page.title not in hidden]
    looked_up = {step.argument for step in question.steps if step.tool == "wiki"}.union(twins)
    needed = [title for title in pages if title in looked_up]
    others = [title for title in pages if title not in looked_up]
    extra = rng.sample(others, min(len(others), rng.randint(*DISTRACTORS[bucket])))
    titles = needed + extra
    rng.shuffle(titles)
    return tuple(titles)


def posed_as(question: Question, how: How) -> Question:
    """Return the question with its `ask`, `support` and `passages` as they are posed in this way."""
    slot, twin, decoy = question.slot, question.twin, question.decoy
    if how == "gone" and slot:
        return take_out(question, slot)
    if how == "stated" and slot:
        reduced = take_out(question, replace(slot, hides=()))
        return replace(reduced, support=(*reduced.support, statement(slot, question.id)))
    if how == "decoy" and decoy:
        gap = "" if question.lang == "zh" else " "
        pages = [
            Passage(page.title, f"{page.text}{gap}{decoy.vague}") if page.title == decoy.title else page
            for page in question.passages
        ]
        return replace(question, passages=tuple(pages))
    if how in ("unique", "ambiguous") and twin:
        ask = replace_word(question.ask, twin.slot, question.lang)
        support = (*(text for text in twin.described if text not in question.support), *question.support)
        if how == "unique":
            return replace(question, ask=ask, support=support)
        # Either of the two may come first: the order must not tell which one is meant.
        both = (support, twin.support) if zlib.crc32(question.id.encode()) % 2 else (twin.support, support)
        return replace(question, ask=ask, support=(*both[0], *both[1]), passages=(*twin.passages, *question.passages))
    return question


def take_out(question: Question, slot: Slot) -> Question:
    """Return the question with the slot's value replaced by its vague wording, in the question or in its story.

    The pages that the slot hides keep their text, since only the user's reply leads to them; nothing else is left of
    what they say.
    """
    hidden = [page.text for page in question.passages if page.title in slot.hides]
    seen = [text for text in question.support if not any(text in page for page in hidden)]
    if slot.where == "ask":
        return replace(question, ask=replace_word(question.ask, slot, question.lang))
    return replace(
        question,
        support=tuple(replace_word(sentence, slot, question.lang) for sentence in seen),
        passages=tuple(
            page if page.title in slot.hides else Passage(page.title, replace_word(page.text, slot, question.lang))
            for page in question.passages
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
