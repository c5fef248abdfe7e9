"""StrategyQA: each step of the decomposition that needs a fact looks up the page with it."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any

from rc1_lib.answer_rules import same_verdict
from rc1_lib.answer_rules.verdicts import last_verdict
from rc1_lib.records import Passage, Question, Step
from rc1_lib.task_specs import record_fields
from rc1_lib.task_specs.spec import TaskSpec, UnusableRecord
from rc1_lib.task_specs.withheld_name import name_slot
from rc1_lib.task_specs.wording import content_words, sentences, tidy


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
    ask, term = record_fields.question(record), tidy(record_fields.text(record, "term"))
    answer = record_fields.required(record, "answer")
    if not isinstance(answer, bool):
        raise record_fields.wrong_type("answer", answer, "true or false")
    facts, steps = _facts(record), _decomposition(record)
    if not ask or not term:
        raise UnusableRecord("empty question or term")
    if not facts:
        raise UnusableRecord("no facts")
    pages = build_pages(term, facts, steps)
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


# Distributes the facts of a StrategyQA record over titled pages, one for each step that looks something up.

# "Is #2 greater than #1?" uses earlier results; "When was #1 born?" still needs a look-up.
_OPERATION = re.compile(
    r"(?:is|are|was|were|do|does|did|can|could|would|will|has|have|had|if|of|what is the (?:difference|sum))\b.*#\d",
    re.IGNORECASE,
)
_NAME_PART = r"(?:[A-Z0-9][\w'’.&–-]*[\w]|[A-Z])"
_NAME = re.compile(rf"{_NAME_PART}(?:\s+(?:(?:of|the|and|de|bin|von|van)\s+){{0,2}}{_NAME_PART})*")
_POSSESSIVE = re.compile(r"['’]s?$")
_QUESTION_WORD = re.compile(
    r"(?:as|who|whom|whose|what|which|when|where|why|how|in|on|at|of|for|from|to|is|are|was|were|do|does|did|can|could|"
    r"would|will|has|have|had|if|the|a|an|list|name|some|many|most|all|people|there)$",
    re.IGNORECASE,
)


def build_pages(term: str, facts: Sequence[str], steps: Sequence[str]) -> tuple[Passage, ...]:
    """Build the pages in the order of look-up; titles are distinct and every fact is on one page.

    Each look-up step gets the fact that shares most words with it. Facts without a step join the term's page, which
    comes last if no step has it. Without steps each fact has its own page.
    """
    looking_up = [step for step in steps if not _OPERATION.match(step)] or list(facts)
    taken = _match(looking_up, facts)
    texts: dict[str, list[str]] = {}
    for at, step in enumerate(looking_up):
        if at in taken:
            fact = facts[taken[at]]
            texts[_title(term, step, fact, texts)] = [fact]
    left = [fact for at, fact in enumerate(facts) if at not in taken.values()]
    if left:
        texts.setdefault(_same_title(term, texts) or term, []).extend(left)
    return tuple(Passage(title, " ".join(held)) for title, held in texts.items())


def _match(steps: Sequence[str], facts: Sequence[str]) -> dict[int, int]:
    """Match steps to facts, each used once: pairs sharing the largest part of the step's words first, then in order."""
    fact_words = [content_words(fact) for fact in facts]
    scored = []
    for at, step in enumerate(steps):
        words = content_words(step)
        for number, known in enumerate(fact_words):
            scored.append((-len(words & known) / max(len(words), 1), at, number))
    taken: dict[int, int] = {}
    for _, at, number in sorted(scored):
        if at not in taken and number not in taken.values():
            taken[at] = number
    return dict(sorted(taken.items()))


def _title(term: str, step: str, fact: str, used: dict[str, list[str]]) -> str:
    """Make a short title for the page of `step`: a name in the step, else the term, else a name in the fact."""
    base = _name(step) or (term if content_words(term) & content_words(f"{step} {fact}") else _name(fact) or term)
    base = term if base.casefold() == term.casefold() else base
    if _same_title(base, used) is None:
        return base
    known = content_words(base)
    shared = [word for word in _words(step) if word not in known] + [word for word in _words(fact) if word not in known]
    bare = base.partition(" (")[0]
    titles = (f"{bare} ({word})" for word in chain(shared, map(str, count(2))))
    return next(title for title in titles if _same_title(title, used) is None)


def _same_title(title: str, used: dict[str, list[str]]) -> str | None:
    """Return the title in `used` that differs from `title` at most in case."""
    return next((other for other in used if other.casefold() == title.casefold()), None)


def _words(text: str) -> list[str]:
    """Return the content words of `text`, longest first: longer words make better titles."""
    return sorted((word for word in content_words(text) if len(word) > 3), key=lambda word: (-len(word), word))


def _name(text: str) -> str | None:
    """Return the longest name in `text`; None if there is none."""
    return max(names_in(text), key=len, default=None)


def names_in(text: str) -> list[str]:
    """Return the capitalised names in `text`, in order, without the opening question word."""
    names = []
    for match in _NAME.finditer(text):
        if text[: match.start()].endswith("#"):
            continue
        words = match[0].split()
        while words and (_QUESTION_WORD.fullmatch(words[0]) or (match.start() == 0 and len(words) == 1)):
            words.pop(0)
        name = _POSSESSIVE.sub("", " ".join(words))
        if len(name) > 2 and not name[0].isdigit():
            names.append(name)
    return names
