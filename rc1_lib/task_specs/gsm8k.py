"""GSM8K: a story becomes the page to look up, its last sentence the question, its annotations the calculations."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rc1_lib.answer_rules import same_number
from rc1_lib.answer_rules.golds import number
from rc1_lib.answer_rules.numbers import last_number
from rc1_lib.numbers.calculator import CalculatorError, evaluate, format_number
from rc1_lib.records import Passage, Question, Step
from rc1_lib.task_specs import record_fields
from rc1_lib.task_specs.gsm8k_slot import number_slot
from rc1_lib.task_specs.spec import TaskSpec, UnusableRecord
from rc1_lib.task_specs.wording import sentences, tidy

_MARK = re.compile(r"<<(.*?)>>")
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)")
_ALREADY_CLEAN = re.compile(r"[0-9.+\-*/()]+")
_UNITS = re.compile(r"[$€£,\s]|(?<=\d)[A-Za-z]+")
_PERCENT = re.compile(r"(\d*\.?\d+)%(?!\s*[\d(.])")
_ASKING = r"(?:in |at |for |by |to |after |then )?(?:how|what|calculate|find|determine|compute)\b"
_CONDITION_FIRST = re.compile(rf"(?:(?:if|given that|suppose)\s+)?(.{{12,}}?)[,.]?\s+({_ASKING}.+)", re.IGNORECASE)
_CONDITION_LAST = re.compile(r"(.+?),?\s+(?:if|given that)\s+(.{12,})[?.]", re.IGNORECASE)
_TOLERANCE = Fraction(1, 10**6)


def parse(record: Mapping[str, Any], index: int, origin: str) -> Question:
    """Convert a GSM8K record (`question`, `answer` with `<<48/2=24>>` marks and a last line `#### 72`) to a Question.

    Args:
        index: its number within `origin`, from 0.
        origin: the short name of where it came from, such as `train`; it becomes part of the id and the title.

    Raises:
        SourceError: a key is missing or of another type.
        UnusableRecord: no story apart from the question, no calculator marks, or marks with wrong arithmetic.
    """
    question, solution = record_fields.question(record), record_fields.text(record, "answer")
    answer, aliases = _final_answer(solution)
    story, ask = _split(question)
    title = f"Story {origin} {index}"
    page = Passage(title, " ".join(story))
    calculations = _calculations(solution)
    slot, kept = number_slot(page.text, ask, [step.argument for step in calculations], answer)
    return Question(
        id=f"gsm8k/{origin}/{index}",
        task="gsm8k",
        source="gsm8k",
        lang="en",
        ask=ask,
        support=story,
        passages=(page,),
        steps=(Step("wiki", title, page.text), *calculations),
        answer=answer,
        aliases=aliases,
        slot=slot,
        kept=kept,
    )


def _final_answer(solution: str) -> tuple[str, tuple[str, ...]]:
    _, mark, final = solution.rpartition("####")
    if not mark:
        raise UnusableRecord("no #### line")
    written = tidy(final)
    plain = written.lstrip("$").removesuffix(".").strip()
    if number(plain) is None:  # a comma that does not part thousands is one, since `1,5` may be 1.5
        raise UnusableRecord("answer is not a number")
    plain = plain.replace(",", "")
    return plain, () if plain == written else (written,)


def _split(question: str) -> tuple[tuple[str, ...], str]:
    """Split into the story's sentences and the question: the last with a question mark, else the last."""
    parts = sentences(question)
    asking = [at for at, part in enumerate(parts) if part.rstrip("\"')”’").endswith("?")]
    at = asking[-1] if asking else len(parts) - 1
    story, ask = parts[:at], " ".join(parts[at:])
    if story:
        return tuple(story), ask
    if match := _CONDITION_FIRST.fullmatch(ask):
        condition, rest = match.groups()
    elif match := _CONDITION_LAST.fullmatch(ask):
        rest, condition = f"{match[1]}?", match[2]
    else:
        raise UnusableRecord("no story")
    return (f"{_capital(condition.rstrip(' ,.'))}.",), _capital(rest)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _calculations(solution: str) -> tuple[Step, ...]:
    marks = _MARK.findall(solution)
    if not marks:
        raise UnusableRecord("no calculator marks")
    return tuple(_calculation(mark) for mark in marks)


def _calculation(mark: str) -> Step:
    """Convert one `expression=result` mark. The step has the calculator's result, which may have more decimals."""
    written, equals, shown = mark.rpartition("=")
    if not equals:
        raise UnusableRecord("calculator mark without a result")
    expression = _clean(written)
    claimed = _clean(shown)
    try:
        value = evaluate(expression)
    except CalculatorError:
        raise UnusableRecord("calculator mark is not arithmetic") from None
    if isinstance(value, bool) or not _NUMBER.fullmatch(claimed):
        raise UnusableRecord("calculator mark is not arithmetic")
    result = format_number(value)
    # Most marks have exactly the calculator's text; only the others need the slower exact comparison.
    if result != claimed and abs(Fraction(value) - Fraction(claimed)) > _TOLERANCE * abs(Fraction(value)):
        raise UnusableRecord("calculator mark does not check out")
    return Step("calc", expression, result)


def _clean(text: str) -> str:
    """Remove currency signs, thousands commas and units; `20%` becomes `(20/100)`, but `7%3` stays a remainder."""
    if _ALREADY_CLEAN.fullmatch(text):
        return text
    return _UNITS.sub("", _PERCENT.sub(r"(\1/100)", text))


def guess_number(question: Question, rng: random.Random) -> str:
    """Invent a number of about the right size, which is hardly ever the answer."""
    try:
        value = float(question.answer.replace(",", ""))
    except ValueError:
        return "0"
    return f"{round(value * rng.choice([0.5, 0.75, 1.5, 2.0]) + rng.choice([-2, -1, 1, 2])):d}"


SPEC = TaskSpec(
    name="gsm8k",
    label="GSM8K",
    template_kind="maths",
    parse=parse,
    is_right=same_number,
    unmarked=last_number,
    guess=guess_number,
    word_problem=True,
    # A story problem's only page is the problem itself: other pages would only mislead.
    borrows_pages=False,
    hub_config="main",
)
