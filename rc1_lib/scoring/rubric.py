"""The local judge: seven dimensions by rule, read from the dialogue alone. It costs nothing and says so.

It is given messages and nothing else, so that it cannot see the gold answer.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rc1_lib.text import tokenize

NAME = "rubric"
BILLABLE = False
Message = Mapping[str, Any]
_ANSWER = re.compile(r"(?:Answer:|答案：)\s*(?P<answer>\S.*)$", re.S)
_TOOLS = {"wiki": "title", "calc": "expression", "ask_user": "question"}


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
    if not any(message["role"] == "assistant" for message in messages):
        raise ValueError("the dialogue holds no assistant message, so there is nothing to judge")
    scores = {name: rule(messages) for name, rule in DIMENSIONS.items()}
    return Scored(scores, 1000.0 * (time.perf_counter() - start), BILLABLE)


def _calls(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [
        (call["function"]["name"], call["function"]["arguments"])
        for message in messages
        for call in message.get("tool_calls") or ()
    ]


def _final(messages: Sequence[Message]) -> str:
    last = messages[-1]
    return str(last.get("content") or "") if last["role"] == "assistant" else ""


def _answer(messages: Sequence[Message]) -> str:
    found = _ANSWER.search(_final(messages))
    return found["answer"] if found else ""


def _answered(messages: Sequence[Message]) -> float:
    """The dialogue ends with a marked, non-empty answer."""
    return float(bool(_answer(messages)))


def _grounded(messages: Sequence[Message]) -> float:
    """Share of the answer's words that the user or a tool said; a bare yes or no counts when anything was looked up."""
    words = tokenize(_answer(messages))
    if not words:
        return 0.0
    if words[0] in {"yes", "no"}:
        return 1.0 if any(name != "ask_user" for name, _ in _calls(messages)) else 0.5
    said = {
        word
        for message in messages
        if message["role"] in {"user", "tool"}
        for word in tokenize(message["content"] or "")
    }
    return sum(word in said for word in words) / len(words)


def _well_formed(messages: Sequence[Message]) -> float:
    """Share of tool calls with a known name and exactly its argument."""
    calls = _calls(messages)
    return sum(_is_well_formed(name, arguments) for name, arguments in calls) / len(calls) if calls else 1.0


def _is_well_formed(name: str, arguments: str) -> bool:
    try:
        parsed = json.loads(arguments)
    except json.JSONDecodeError:
        return False
    return isinstance(parsed, dict) and name in _TOOLS and set(parsed) == {_TOOLS[name]}


def _economical(messages: Sequence[Message]) -> float:
    """Share of calls that were not made before in the same words."""
    calls = _calls(messages)
    return len(set(calls)) / len(calls) if calls else 1.0


def _reasoned(messages: Sequence[Message]) -> float:
    """The final message says more than the answer: full marks from eight further words."""
    further = len(tokenize(_final(messages))) - len(tokenize(_answer(messages))) - 1
    return min(1.0, max(0, further) / 8)


def _concise(messages: Sequence[Message]) -> float:
    """Full marks up to 60 words in the final message, none from 240."""
    return min(1.0, max(0.0, (240 - len(tokenize(_final(messages)))) / 180))


def _restrained(messages: Sequence[Message]) -> float:
    """Full marks for no or one clarifying question, half for two, a third for three."""
    asked = sum(name == "ask_user" for name, _ in _calls(messages))
    return 1.0 / max(1, asked)


DIMENSIONS: dict[str, Callable[[Sequence[Message]], float]] = {
    "answered": _answered,
    "grounded": _grounded,
    "well_formed": _well_formed,
    "economical": _economical,
    "reasoned": _reasoned,
    "concise": _concise,
    "restrained": _restrained,
}
