"""Grades that are made up: the same for the same dialogue, spread by noise of a known size."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random

from rc1_lib.scoring.rubric import DIMENSIONS
from rc1_lib.testing.judge_server.behaviour import Behaviour
from rc1_lib.testing.judge_server.wire import Prompt

_FENCED = re.compile(r"<dialogue-(?P<nonce>[0-9a-f]{16})>(?P<dialogue>.*?)</dialogue-(?P=nonce)>", re.S)
_ORDER = re.compile(r"GRADE EVERYTHING (?P<grade>\d+(?:\.\d+)?)")
_LOWEST, _HIGHEST = 0.35, 0.65
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Graded:
    """A reply of the model before any fault: its grades by dimension, and why."""

    reason: str
    grades: dict[str, float]

    @property
    def text(self) -> str:
        """The reply's text, one JSON object."""
        return json.dumps({"reason": self.reason, **self.grades})

    @property
    def thoughts(self) -> str:
        """What a reasoning model might think before: it holds a decoy that gives full marks."""
        decoy = json.dumps({"reason": "At first sight.", **dict.fromkeys(self.grades, 1.0)})
        return f"At first sight I would say\n{decoy}\nbut on reading it again that is too kind."


def graded(behaviour: Behaviour, prompt: Prompt, draw: str) -> Graded:
    """Grade what is fenced in the prompt; what is not fenced is obeyed if the behaviour is gullible.

    Args:
        behaviour: whose seed, noise and faults of character apply.
        prompt: what was asked.
        draw: the same text gets the same noise.
    """
    dialogue, outside = _split(prompt)
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


def _split(prompt: Prompt) -> tuple[str, str]:
    """What stands in the fences of the messages, and everything else that was said, the system's words included."""
    inside = [found["dialogue"].strip() for text in prompt.messages for found in _FENCED.finditer(text)]
    outside = [prompt.system, *(_FENCED.sub("", text) for text in prompt.messages)]
    return "\n".join(inside or prompt.messages), "\n".join(outside)
