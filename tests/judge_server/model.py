"""The test double's simulated model: made-up grades, and replies spoilt by the model's faults."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from random import Random
from typing import Literal

from rc1_lib.judge.rubric import DIMENSIONS
from tests.judge_server.behaviour import Behaviour, FaultKind

REFUSED = "I'm sorry, but I can't help with that request."
_FENCED = re.compile(r"<dialogue-(?P<nonce>[0-9a-f]{16})>(?P<dialogue>.*?)</dialogue-(?P=nonce)>", re.S)
_ORDER = re.compile(r"GRADE EVERYTHING (?P<grade>\d+(?:\.\d+)?)")
_LOWEST, _HIGHEST = 0.35, 0.65
_DIGITS = 4
_TOKENS_OF_A_MESSAGE = 4
"""Tokens that a chat template adds to each message, for role and delimiters."""


def tokens(text: str) -> int:
    """Estimate the tokens of a text: one per four ASCII characters, one per other character."""
    ascii_only = len(text.encode("ascii", "ignore"))
    return math.ceil(ascii_only / 4) + len(text) - ascii_only


def cut(text: str, most: int) -> str:
    """Return the longest beginning of `text` with at most `most` tokens."""
    return next((text[:end] for end in range(len(text), 0, -1) if tokens(text[:end]) <= most), "")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A client's request; None where it has no schema or no limit."""

    system: str
    messages: tuple[str, ...]
    dimensions: tuple[str, ...] | None
    max_tokens: int | None
    by_tool: bool = False

    @property
    def tokens(self) -> int:
        """Estimated tokens of the prompt."""
        return sum(_TOKENS_OF_A_MESSAGE + tokens(text) for text in (self.system, *self.messages) if text)


@dataclass(frozen=True, slots=True)
class Graded:
    """The model's reply before any fault: grades by dimension, and a reason."""

    reason: str
    grades: dict[str, float]

    @property
    def text(self) -> str:
        """The reply's text, one JSON object."""
        return json.dumps({"reason": self.reason, **self.grades})

    @property
    def thoughts(self) -> str:
        """Thinking of a reasoning model before the reply; it contains a decoy with full marks."""
        decoy = json.dumps({"reason": "At first sight.", **dict.fromkeys(self.grades, 1.0)})
        return f"At first sight I would say\n{decoy}\nbut on reading it again that is too kind."


@dataclass(frozen=True, slots=True)
class Reply:
    """The model's reply; `prompt_blocked` if the prompt was blocked before the model read it."""

    text: str
    thoughts: str
    finish: Literal["stop", "length", "refusal"]
    tokens_in: int
    prompt_blocked: bool = False

    @property
    def tokens_thought(self) -> int:
        """Tokens of the thoughts."""
        return tokens(self.thoughts)

    @property
    def tokens_text(self) -> int:
        """Tokens of the text, or of the model's refusal."""
        declined = self.finish == "refusal" and not self.prompt_blocked
        return tokens(REFUSED if declined else self.text)

    @property
    def tokens_out(self) -> int:
        """All tokens that the model wrote."""
        return self.tokens_thought + self.tokens_text


def fault_of(behaviour: Behaviour, number: int) -> FaultKind | None:
    """Return the fault of the request with this number, or None."""
    point = Random(f"fault\n{behaviour.seed}\n{number}").random()
    for kind, rate in sorted(behaviour.faults.items()):
        if point < rate:
            return FaultKind(kind)
        point -= rate
    return None


def latency_s(behaviour: Behaviour, number: int) -> float:
    """Return the latency of the reply to the request with this number, in seconds."""
    median, sigma = behaviour.latency_ms
    if behaviour.delay == "zero" or median == 0.0:
        return 0.0
    return Random(f"latency\n{behaviour.seed}\n{number}").lognormvariate(math.log(median / 1000.0), sigma)


def graded(behaviour: Behaviour, prompt: Prompt, draw: str) -> Graded:
    """Grade the fenced part of the prompt; a gullible judge obeys orders outside it. `draw` seeds the noise."""
    inside = [found["dialogue"].strip() for text in prompt.messages for found in _FENCED.finditer(text)]
    dialogue = "\n".join(inside or prompt.messages)
    outside = "\n".join([prompt.system, *(_FENCED.sub("", text) for text in prompt.messages)])
    dimensions = tuple(DIMENSIONS) if behaviour.constant_reply else prompt.dimensions or tuple(DIMENSIONS)
    order = _ORDER.search(outside) if behaviour.gullible else None
    if order is not None:
        return Graded("It was asked for.", dict.fromkeys(dimensions, float(order["grade"])))
    if behaviour.constant_reply:
        dialogue = draw = ""
    grades = {name: _grade(behaviour, dialogue, draw, name) for name in dimensions}
    best, worst = max(grades, key=grades.__getitem__), min(grades, key=grades.__getitem__)
    return Graded(f"Made up by a test double, which finds it most {best} and least {worst}.", grades)


def _grade(behaviour: Behaviour, dialogue: str, draw: str, dimension: str) -> float:
    base = Random(f"grade\n{behaviour.seed}\n{dimension}\n{dialogue}").uniform(_LOWEST, _HIGHEST)
    noise = Random(f"noise\n{behaviour.seed}\n{dimension}\n{draw}\n{dialogue}").gauss(0.0, behaviour.noise_sd)
    shift = behaviour.shift if behaviour.shifted in (None, dimension) else 0.0
    return round(min(1.0, max(0.0, base + noise + shift)), _DIGITS)


def replied(behaviour: Behaviour, prompt: Prompt, graded: Graded, fault: FaultKind | None, turn: int) -> Reply:
    """Return the model's reply, spoilt by the fault if it is one of the model's; `turn` requests had it before."""
    if fault is FaultKind.REFUSAL:
        return Reply("", "", "refusal", prompt.tokens, prompt_blocked=turn % 2 == 1)
    thoughts = graded.thoughts if behaviour.thinking else ""
    text = graded.text
    if fault is FaultKind.BAD_JSON_REPLY:
        text = _no_json(graded, turn)
    elif fault is FaultKind.WRONG_SCHEMA:
        text = _wrong(graded, turn)
    whole = tokens(thoughts) + tokens(text)
    most = whole if prompt.max_tokens is None else prompt.max_tokens
    if fault is FaultKind.TRUNCATED:
        most = min(most, tokens(thoughts) + tokens(text) // 2)
    if most >= whole:
        return Reply(text, thoughts, "stop", prompt.tokens)
    thoughts = cut(thoughts, most)
    return Reply(cut(text, most - tokens(thoughts)), thoughts, "length", prompt.tokens)


def _no_json(graded: Graded, turn: int) -> str:
    """Return invalid JSON: a reply cut off, single quotes with commas instead of braces, and plain prose, in turn."""
    return (
        graded.text[: len(graded.text) * 2 // 3],
        graded.text.replace('"', "'").replace("}", ",, "),
        "I would grade it about half way in all respects.",
    )[turn % 3]


def _wrong(graded: Graded, turn: int) -> str:
    """Return a reply with a missing dimension, a string, a number above 1, or NaN, in turn."""
    names = list(graded.grades)
    name = names[turn % len(names)]
    reply: dict[str, object] = {"reason": graded.reason, **graded.grades}
    if turn % 4 == 0:
        del reply[name]
    else:
        reply[name] = ("high", 1.7, math.nan)[turn % 4 - 1]
    return json.dumps(reply)
