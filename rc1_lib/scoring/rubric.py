"""The local judge: seven dimensions by rule, read from the dialogue alone. It costs nothing and says so.

It is given messages and nothing else, so that it cannot see the gold answer. Each dimension is graded, as far as rules
can, by the sentence that `configs/judge` gives to a live judge.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rc1_lib.language.numerals import numbers, operands
from rc1_lib.language.open_references import is_open
from rc1_lib.records import Message
from rc1_lib.rows.conventions import ARGUMENT_OF
from rc1_lib.rows.counts import ASK
from rc1_lib.scoring.economy import VERDICTS, brevity, economy, is_verdict
from rc1_lib.scoring.transcript import CALC, Call, Transcript, read
from rc1_lib.text import tokenize

NAME = "rubric"
BILLABLE = False
OPEN_ANSWER = 0.9
"""What an answer is worth as a complete one, when it answers a question that was left open."""
REASONING_WORDS = 6.0
"""Words beside the answer after which 63 % of the reasoning's worth is reached."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores in [0, 1] by dimension, how long they took, and whether anybody was billed."""

    scores: Mapping[str, float]
    latency_ms: float
    billable: bool


def score(messages: Sequence[Message]) -> Scored:
    """Judge one dialogue (chat format) on all dimensions.

    Raises:
        ValueError: when there is no assistant message to judge.
    """
    start = time.perf_counter()
    if not any(message.get("role") == "assistant" for message in messages):
        raise ValueError("the dialogue holds no assistant message, so there is nothing to judge")
    reading = _Reading(read(messages))
    scores = {name: rule(reading) for name, rule in DIMENSIONS.items()}
    return Scored(scores, 1000.0 * (time.perf_counter() - start), BILLABLE)


@dataclass
class _Reading:
    """What several dimensions need of a dialogue, found out once."""

    dialogue: Transcript
    answer: list[str] = field(init=False)
    reasoning: list[str] = field(init=False)

    def __post_init__(self) -> None:
        before, answer = self.dialogue.parted
        self.answer = tokenize(answer or "")
        # A mark that nothing follows is no answer, but words like any others.
        self.reasoning = tokenize(before if answer else self.dialogue.final)

    @cached_property
    def open(self) -> bool:
        """Whether the user or a page speaks of something without naming it."""
        return is_open(self.dialogue.asked, self.dialogue.pages)

    @property
    def length(self) -> int:
        """Words of the final message, without the mark of the answer."""
        return len(self.reasoning) + len(self.answer)


def _answered(reading: _Reading) -> float:
    """The dialogue ends with a marked, non-empty answer; it is not complete where an open question was not settled."""
    if not reading.answer:
        return 0.0
    return OPEN_ANSWER if reading.open and not reading.dialogue.questions else 1.0


def _grounded(reading: _Reading) -> float:
    """Share of the answer's words that the user or a tool said, times the share of the sums' numbers that were said.

    A bare yes or no is in nobody's words: it counts fully when a comparison came to one, half when anything was looked
    up.
    """
    if not reading.answer:
        return 0.0
    dialogue = reading.dialogue
    if len(reading.answer) == 1 and reading.answer[0] in VERDICTS:
        looked_up = [call for call in dialogue.calls if call.name != ASK]
        compared = any(map(is_verdict, looked_up))
        return _sourced(dialogue) * (1.0 if compared else 0.5 if looked_up else 0.0)
    said = {word for role, text in dialogue.spoken if role in {"user", "tool"} for word in tokenize(text)}
    return _sourced(dialogue) * sum(word in said for word in reading.answer) / len(reading.answer)


def _sourced(dialogue: Transcript) -> float:
    """Share of the numbers in sums that the user or a tool had said before; 1 where nothing was calculated."""
    sums = [call for call in dialogue.calls if call.name == CALC]
    if not sums:
        return 1.0
    since: dict[str, int] = {}
    for place, (role, text) in enumerate(dialogue.spoken):
        if role in {"user", "tool"}:
            for number in numbers(text):
                since.setdefault(number, place)
    known = [since.get(number, call.place) < call.place for call in sums for number in operands(call.arguments)]
    return sum(known) / len(known) if known else 1.0


def _well_formed(reading: _Reading) -> float:
    """Share of tool calls with a known name and exactly its argument."""
    calls = reading.dialogue.calls
    return sum(map(_is_well_formed, calls)) / len(calls) if calls else 1.0


def _is_well_formed(call: Call) -> bool:
    parsed = call.parsed
    return isinstance(parsed, dict) and call.name in ARGUMENT_OF and set(parsed) == {ARGUMENT_OF[call.name]}


def _economical(reading: _Reading) -> float:
    """Mean of two shares of the calls: not made before in the same words; and also of some use."""
    return economy(reading.dialogue)


def _reasoned(reading: _Reading) -> float:
    """How much the final message says before the answer: nothing at no words, then ever closer to full marks."""
    return 1.0 - math.exp(-len(reading.reasoning) / REASONING_WORDS)


def _concise(reading: _Reading) -> float:
    """Full marks up to a brief message's words, half at as many more as can be spared."""
    return brevity(reading.length)


def _restrained(reading: _Reading) -> float:
    """Full marks for no question, the n-th part for n of them, and half of that where nothing was open."""
    asked = reading.dialogue.questions
    return 1.0 if not asked else (1.0 if reading.open else 0.5) / asked


DIMENSIONS: dict[str, Callable[[_Reading], float]] = {
    "answered": _answered,
    "grounded": _grounded,
    "well_formed": _well_formed,
    "economical": _economical,
    "reasoned": _reasoned,
    "concise": _concise,
    "restrained": _restrained,
}
