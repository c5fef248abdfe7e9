"""Questions of any data set, by the form of their answers: numbers, yes or no, or other texts.

A record has `question` and `answer`, and where there are any, `choices` and `context`. `sources.columns` says which
columns of a data set these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rc1_lib.answer_rules import same_name, same_number, same_verdict
from rc1_lib.answer_rules.golds import normalised, number
from rc1_lib.answer_rules.numbers import last_number
from rc1_lib.answer_rules.verdicts import last_verdict, verdict_in
from rc1_lib.errors import SourceError
from rc1_lib.records import Passage, Question, Slot, Step
from rc1_lib.task_specs import record_fields
from rc1_lib.task_specs.gsm8k import guess_number
from rc1_lib.task_specs.hotpotqa import guess_title
from rc1_lib.task_specs.spec import Parser, TaskSpec, UnusableRecord
from rc1_lib.task_specs.strategyqa import guess_verdict, names_in
from rc1_lib.task_specs.withheld_name import name_slot
from rc1_lib.task_specs.wording import occurrences, sentences, tidy

MOST_WORDS = 20
"""Words of the longest answer: a rule that compares word for word rejects nearly everything said in more."""
_ASK = "What is the answer?"
"""The question of a record whose only sentence is what it is about, such as `7, 9, 11, ?`."""
_NOT_ABOUT = "nothing can be withheld: the question asks about no name that the text has"
_WITHOUT_ALIASES = {"any_number": same_number, "any_verdict": same_verdict}
"""Rules that would reject a second answer that differs from the first."""


def parser(task: str, read: Callable[[object], str]) -> Parser:
    """Return the parser of `task`; `read` converts one answer, and raises SourceError for one of another form.

    What is looked up is the page: the context, or what a question says before it asks. A name that the question asks
    about is withheld where the page, titled by it, can only be found by it.
    """

    def parse(record: Mapping[str, Any], index: int, origin: str) -> Question:
        text = record_fields.question(record)
        if not text:
            raise record_fields.wrong_type("question", record["question"], "a question")
        choices = _choices(record)
        answer, *aliases = map(read, _answers(record, choices))
        rule = _WITHOUT_ALIASES.get(task)
        if rule and not all(rule(alias, answer) for alias in aliases):
            raise UnusableRecord("several answers that differ")
        others = choices.keys() - {answer, *aliases}
        if task == "any_text" and any(same_name(other, answer, aliases) for other in others):
            raise UnusableRecord("the rule takes another choice for the answer")
        if record.get("context") is not None:
            told, ask = sentences(_context(record)), text
        else:
            told, ask = _split(text, alone=not choices)
        if choices:
            told = [*told, f"The options are: {'; '.join(choices)}."]
        # Which sentences say "no" or "2" says nothing; where they answer a question, all of the text is evidence.
        quoted = task == "any_text" and not choices
        support = [one for one in told if quoted and occurrences(answer, one)] or told
        page, slot, kept = _page(ask, " ".join(told), answer, f"Text {origin} {index}", bool(choices))
        return Question(
            id=f"{task}/{origin}/{index}",
            task=task,
            source=task,
            lang="en",
            ask=ask,
            support=tuple(support),
            passages=(page,),
            steps=(Step("wiki", page.title, page.text),),
            answer=answer,
            aliases=tuple(dict.fromkeys(alias for alias in aliases if alias != answer)),
            slot=slot,
            kept=kept,
        )

    return parse


def _context(record: Mapping[str, Any]) -> str:
    text = tidy(" ".join(_texts(record["context"])))
    if not text:
        raise record_fields.wrong_type("context", record["context"], "a text or a list of texts")
    return text


def _texts(value: object) -> Iterator[str]:
    """Yield the texts of lists in lists, in order."""
    if isinstance(value, str):
        yield value
    else:
        for part in record_fields.sequence(value, "context"):
            yield from _texts(part)


def _choices(record: Mapping[str, Any]) -> dict[str, str]:
    """Return text -> label of each choice; where a record names no labels, they are A, B, ..."""
    given = record.get("choices")
    if given is None:
        return {}
    named = isinstance(given, Mapping)
    texts = record_fields.sequence(given.get("text") if named else given, "choices")
    labels = record_fields.sequence(given["label"], "choices") if named and "label" in given else _letters(len(texts))
    if len(labels) != len(texts):
        raise record_fields.wrong_type("choices", given, "a label for each text")
    found = dict(zip((tidy(str(one)) for one in texts), map(str, labels), strict=True))
    if len(found) != len(texts) or len(set(found.values())) != len(texts):
        raise record_fields.wrong_type("choices", given, "every text and every label once")
    return found


def _letters(count: int) -> list[str]:
    return [chr(ord("A") + at) for at in range(count)]


def _answers(record: Mapping[str, Any], choices: Mapping[str, str]) -> list[object]:
    """Return the exact answer and its aliases: the values under `answer`, of choices the texts."""
    value = record_fields.required(record, "answer")
    given = list(value) if isinstance(value, list | tuple) else [value]
    if not given or any(one is None or (isinstance(one, str) and not one.strip()) for one in given):
        raise record_fields.wrong_type("answer", value, "an answer that is not empty")
    if not choices:
        return given
    named = isinstance(record["choices"], Mapping) and "label" in record["choices"]
    return [_chosen(one, value, choices, named) for one in given]


def _chosen(one: object, value: object, choices: Mapping[str, str], named: bool) -> str:
    """Return the text of the choice that `one` means: its label if the record names labels, its text or its number.

    Raises:
        SourceError: if it means none, or as a text another than as a number or letter. `value` is shown.
    """
    texts, labels = list(choices), {label: text for text, label in choices.items()}
    said = "" if isinstance(one, bool) or not isinstance(one, str | int) else tidy(str(one))
    if named and said in labels:
        return labels[said]
    meant = {said} & choices.keys()
    if not isinstance(one, int):
        meant |= {labels[said]} if said in labels else set()
    elif said and 0 <= one < len(texts):
        meant.add(texts[one])
    if len(meant) != 1:
        expected = f"one of the choices, its number from 0, or one of {list(labels)}"
        expected = f"either a choice or the number or letter of one, not of another: {texts}" if meant else expected
        raise record_fields.wrong_type("answer", value, expected)
    return meant.pop()


def _split(text: str, *, alone: bool) -> tuple[list[str], str]:
    """Split into the sentences before the question, and the question with what follows it.

    If nothing comes before it and the text stands `alone`, what is asked is on the page, and the question is `_ASK`.
    """
    parts = sentences(text)
    at = max((at for at, part in enumerate(parts) if part.endswith("?")), default=len(parts) - 1)
    return ([text], _ASK) if alone and not at else (parts[:at], " ".join(parts[at:]))


def _page(ask: str, told: str, answer: str, title: str, options: bool) -> tuple[Passage, Slot | None, str]:
    """Return the page, titled by a name that can be withheld if there is one, its slot, and why there is none."""
    why = "nothing can be withheld: the options name the answer" if options else _NOT_ABOUT
    asking = next((part for part in sentences(ask) if part.endswith("?")), "")
    for name in [] if options else sorted(names_in(asking), key=len, reverse=True):
        if name not in told:
            continue
        page = Passage(name, told)
        slot, why = name_slot([name], ask, [page], [name], answer)
        if slot:
            return page, slot, ""
    return Passage(title, told), None, why


def _number(value: object) -> str:
    text = str(value).strip().removesuffix(".0")
    if isinstance(value, bool) or number(text) is None:
        raise record_fields.wrong_type("answer", value, "a number; a data set with other answers is any_text")
    return text.replace(",", "")


def _verdict(value: object) -> str:
    stated = value if isinstance(value, bool) else verdict_in(str(value))
    if stated is None:
        raise record_fields.wrong_type("answer", value, "yes or no, or true or false")
    return "yes" if stated else "no"


def _finite(value: str | float) -> bool:
    return isinstance(value, str) or math.isfinite(value)


def _text(value: object) -> str:
    if not isinstance(value, str | int | float) or isinstance(value, bool) or not _finite(value):
        raise record_fields.wrong_type("answer", value, "a text, a number or a list of them")
    text = tidy(str(value))
    if not normalised(text):
        raise record_fields.wrong_type(
            "answer", value, "more than an article or a mark, of which the rule keeps nothing"
        )
    if len(text.split()) > MOST_WORDS:
        raise SourceError(f"the key 'answer' holds {len(text.split())} words; expected at most {MOST_WORDS}.")
    return text


SPECS = (
    TaskSpec(
        name="any_number", label="numbers", template_kind="maths", parse=parser("any_number", _number),
        is_right=same_number, unmarked=last_number, guess=guess_number, word_problem=True,
    ),
    TaskSpec(
        name="any_verdict", label="yes or no", template_kind="multihop", parse=parser("any_verdict", _verdict),
        is_right=same_verdict, unmarked=last_verdict, guess=guess_verdict, word_problem=True,
    ),
    TaskSpec(
        name="any_text", label="texts", template_kind="multihop", parse=parser("any_text", _text),
        is_right=same_name, guess=guess_title, word_problem=True,
    ),
)  # fmt: skip
