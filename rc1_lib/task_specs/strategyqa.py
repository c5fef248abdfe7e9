"""StrategyQA: each step of the decomposition that needs a fact looks up the page with it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from rc1_lib.answer_rules import same_verdict
from rc1_lib.answer_rules.verdicts import last_verdict
from rc1_lib.records import Question, Step
from rc1_lib.task_specs import record_fields
from rc1_lib.task_specs.spec import TaskSpec, UnusableRecord
from rc1_lib.task_specs.strategyqa_pages import build_pages
from rc1_lib.task_specs.withheld_name import name_slot
from rc1_lib.task_specs.wording import occurrences, sentences, tidy


def parse(record: Mapping[str, Any], index: int, origin: str) -> Question:
    """Convert a StrategyQA record to a Question.

    `facts` may be a list or one text of several sentences, and `decomposition` may be missing or empty (both occur in
    copies on the hub): each fact then gets its own page.

    Args:
        record: the decoded record with `term`, `question`, `answer` (a bool), `facts`, and mostly `decomposition`.
        index: its number within `origin`, from 0.
        origin: the short name of where it came from, such as `train`; it becomes part of the id.

    Raises:
        SourceError: a key is missing or of another type.
        UnusableRecord: the question or term is empty, or there are no facts.
    """
    ask, term = tidy(record_fields.text(record, "question")), tidy(record_fields.text(record, "term"))
    answer = record_fields.required(record, "answer")
    if not isinstance(answer, bool):
        raise record_fields.wrong_type("answer", answer, "true or false")
    facts, steps = _facts(record), _decomposition(record)
    if not ask or not term:
        raise UnusableRecord("empty question or term")
    if not facts:
        raise UnusableRecord("no facts")
    pages = build_pages(term, facts, steps)
    lookups = tuple(page.title for page in pages if not occurrences(page.title.casefold(), ask.casefold()))
    verdict = "yes" if answer else "no"
    slot, kept = name_slot([term], ask, pages, [page.title for page in pages], verdict)
    return Question(
        id=f"strategyqa/{origin}/{index}",
        task="strategyqa",
        source="strategyqa",
        lang="en",
        ask=ask,
        support=facts,
        passages=pages,
        steps=tuple(Step("wiki", page.title, page.text) for page in pages),
        answer=verdict,
        slot=slot,
        kept=kept,
        lookups=lookups,
    )


def _facts(record: Mapping[str, Any]) -> tuple[str, ...]:
    value = record_fields.required(record, "facts")
    written = sentences(tidy(value)) if isinstance(value, str) else record_fields.text_list(value, "facts")
    tidied = (_ended(tidy(fact)) for fact in written)
    return tuple(dict.fromkeys(fact for fact in tidied if fact))


def _decomposition(record: Mapping[str, Any]) -> tuple[str, ...]:
    if record.get("decomposition") is None:
        return ()
    return tuple(tidy(step) for step in record_fields.texts(record, "decomposition") if step.strip())


def _ended(fact: str) -> str:
    """Add a full stop, which many facts lack: pages join several of them."""
    return f"{fact}." if fact and fact[-1] not in ".?!\"'”’" else fact


def guess_verdict(_: Question, rng: random.Random) -> str:
    """Guess yes or no, which may be right by chance."""
    return rng.choice(["yes", "no"])


SPEC = TaskSpec(
    name="strategyqa",
    label="StrategyQA",
    template_kind="multihop",
    parse=parse,
    is_right=same_verdict,
    unmarked=last_verdict,
    guess=guess_verdict,
    multi_hop=True,
)
