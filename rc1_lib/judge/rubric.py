"""The local judge: a stand-in for a live one, with seven dimensions by simple rules. It costs nothing and says so.

It reads the dialogue alone, so that it cannot see the gold answer. It knows form, length and which words were said
before; it does not understand what a dialogue is about, and no team should train by its grades alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rc1_lib.judge.transcript import Call, Transcript, read
from rc1_lib.records import Message
from rc1_lib.rows.chat import ARGUMENT_OF, ASK
from rc1_lib.text.tokens import tokenize

NAME = "rubric"
BILLABLE = False
REASONING_WORDS = 6.0
"""Words before the answer after which 63 % of the reasoning's worth is reached."""
BRIEF_WORDS, SPARE_WORDS = 40, 60
"""Words of a final message that are never too many, and how many more halve what its brevity is worth."""


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
    dialogue = read(messages)
    scores = {name: rule(dialogue) for name, rule in DIMENSIONS.items()}
    return Scored(scores, 1000.0 * (time.perf_counter() - start), BILLABLE)


def _answered(dialogue: Transcript) -> float:
    """1 where the dialogue ends with a marked answer that is not empty."""
    return float(bool(dialogue.answer))


def _grounded(dialogue: Transcript) -> float:
    """Share of the answer's words that the user or a tool said, times the share of the sums' numbers that were said.

    A bare yes or no stands in nobody's words: it counts where anything was looked up or calculated.
    """
    if dialogue.is_verdict:
        return dialogue.told_share * any(call.name != ASK for call in dialogue.calls)
    said = {word for role, text in dialogue.spoken if role in {"user", "tool"} for word in tokenize(text)}
    answer = dialogue.answer
    return dialogue.told_share * sum(word in said for word in answer) / len(answer) if answer else 0.0


def _well_formed(dialogue: Transcript) -> float:
    """Share of tool calls with a known name and exactly its argument."""
    calls = dialogue.calls
    return sum(map(_is_well_formed, calls)) / len(calls) if calls else 1.0


def _is_well_formed(call: Call) -> bool:
    parsed = call.parsed
    return isinstance(parsed, dict) and call.name in ARGUMENT_OF and set(parsed) == {ARGUMENT_OF[call.name]}


def _economical(dialogue: Transcript) -> float:
    """Share of the calls that were not made before in the same words."""
    calls = [(call.name, call.arguments) for call in dialogue.calls]
    return len(set(calls)) / len(calls) if calls else 1.0


def _reasoned(dialogue: Transcript) -> float:
    """How much the final message says before the answer: nothing at no words, then ever closer to full marks."""
    return 1.0 - math.exp(-len(dialogue.reasoning) / REASONING_WORDS)


def _concise(dialogue: Transcript) -> float:
    """Full marks up to a brief message's words, half at as many more as can be spared."""
    words = len(dialogue.reasoning) + len(dialogue.answer)
    return SPARE_WORDS / (SPARE_WORDS + max(0, words - BRIEF_WORDS))


def _restrained(dialogue: Transcript) -> float:
    """Full marks for no question to the user, half for one, a third for two."""
    return 1.0 / (1 + dialogue.questions)


DIMENSIONS: dict[str, Callable[[Transcript], float]] = {
    "answered": _answered,
    "grounded": _grounded,
    "well_formed": _well_formed,
    "economical": _economical,
    "reasoned": _reasoned,
    "concise": _concise,
    "restrained": _restrained,
}
