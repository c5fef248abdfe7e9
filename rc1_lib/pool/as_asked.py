"""Compare a row with the source question it was made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rc1_lib.config.run_config import RunConfig
from rc1_lib.pool.dialogue import closing_reason, row_slot
from rc1_lib.pool.prompting import How, may_be_stated, missing_slot, posed_as, replace_word, statement
from rc1_lib.records import Question, Row, RowPassage, RowSlot, Slot
from rc1_lib.rows.inconsistency import Inconsistency, Kind
from rc1_lib.runtime.batches import gc_paused
from rc1_lib.sources import load_questions
from rc1_lib.workspace.artifacts import Workspace

Questions = Mapping[tuple[str, str], Question]
"""Source and id -> the question."""


def known_questions(config: RunConfig, workspace: Workspace) -> Questions:
    """Return the questions of the configured source; none for hub sources, since no verdict may depend on a download.

    Raises:
        SourceError: when the source is missing or damaged.
    """
    if config.sources.use == "hub":
        return {}
    with gc_paused():
        questions, _ = load_questions(config, workspace)
    return {(question.source, question.id): question for of_task in questions.values() for question in of_task}


def pages_of(questions: Questions) -> Mapping[str, set[str]]:
    """Return the texts of the source's pages by title: a question may borrow pages from any other."""
    found: dict[str, set[str]] = {}
    for question in questions.values():
        for page in question.passages:
            found.setdefault(page.title, set()).add(page.text)
    return found


def as_asked(row: Row, question: Question, lent: Mapping[str, set[str]]) -> Iterator[Inconsistency]:
    """Yield every difference between `row` and `question`, whose slot is removed first if the row withholds it.

    For a finished dialogue only question and gold answer are compared: it brings its own environment. Pages borrowed
    from other questions come after the question's own.

    Args:
        row: a row of the pool, the shadow set or its takes.
        lent: the result of `pages_of`.
    """
    for name, found, expected in _compared(row, question):
        if found != expected:
            yield Inconsistency(Kind.SOURCE, name, str(found), str(expected))
    if question.dialogue is None:
        how = _how(row, question)
        own = len(posed_as(question, how).passages)
        slot = question.slot if how == "stated" else slot_of(row["slot"]) if row["slot"] else None
        for page in (row["passages"] or [])[own:]:
            if not _borrowed(page, slot, row["lang"], lent.get(page["title"], set())):
                yield Inconsistency(Kind.SOURCE, "passages", page["text"], f"the source's page '{page['title']}'")


def _borrowed(page: RowPassage, slot: Slot | None, lang: str, texts: set[str]) -> bool:
    return page["text"] in texts or (
        slot is not None and any(replace_word(text, slot, lang) == page["text"] for text in texts)
    )


def slot_of(slot: RowSlot) -> Slot:
    """Return a row's slot as a `Slot`."""
    return Slot(slot["where"], slot["value"], slot["vague"], slot["wanted"], slot.get("way") or "gone")


def _compared(row: Row, question: Question) -> Iterator[tuple[str, object, object]]:
    """Yield each compared field as (name, value in the row, value expected from the question)."""
    yield "question", row["question"], question.ask
    yield "lang", row["lang"], question.lang
    yield "answer", row["answer"], question.answer
    yield "aliases", row["aliases"] or [], list(question.aliases)
    if question.dialogue is None:
        how = _how(row, question)
        missing, posed = missing_slot(question, how), posed_as(question, how)
        pages = [{"title": page.title, "text": page.text} for page in posed.passages]
        yield "posed.ask", row["posed"]["ask"], posed.ask
        if row["posed"]["reason"]:  # even if no message contains it: `reworded` may insert it
            expected = closing_reason(question.steps, question.support, question.lang)
            yield "posed.reason", row["posed"]["reason"], expected
        yield "slot", row["slot"], row_slot(missing) if missing else None
        yield "support", row["support"], list(posed.support)
        if how == "stated":
            yield "posed.quoted", posed.support[-1] in row["posed"]["quoted"], True
        yield "passages", (row["passages"] or [])[: len(pages)], pages


def _how(row: Row, question: Question) -> How:
    """Return what was done to the question, as far as the row shows it."""
    slot = row["slot"]
    if row["needs_clarification"]:
        return "ambiguous" if slot and slot.get("way") == "ambiguous" else "gone"
    if question.slot and may_be_stated(question) and statement(question.slot, question.id) in row["support"]:
        return "stated"
    if row["posed"]["ask"] != question.ask:
        return "unique"
    vague = question.decoy.vague if question.decoy else ""
    return "decoy" if vague and any(vague in page["text"] for page in row["passages"] or ()) else "complete"
