"""Faults: which request gets one, and what they do to the model's reply."""

from __future__ import annotations

import json
import math
from random import Random

from rc1_lib.testing.judge_server.behaviour import Behaviour, FaultKind
from rc1_lib.testing.judge_server.grading import Graded
from rc1_lib.testing.judge_server.tokens import cut, tokens
from rc1_lib.testing.judge_server.wire import Prompt, Reply
from rc1_lib.testing.judge_server.wire_openai import REFUSED

SERVER_ERRORS = (500, 502, 503)
"""Statuses of `server_error`, in turn."""


def drawn(behaviour: Behaviour, number: int) -> FaultKind | None:
    """The fault of the request with this number, or None."""
    if not behaviour.faults:
        return None
    point = Random(f"fault\n{behaviour.seed}\n{number}").random()
    for kind, rate in sorted(behaviour.faults.items()):
        if point < rate:
            return FaultKind(kind)
        point -= rate
    return None


def latency_s(behaviour: Behaviour, number: int) -> float:
    """How long the reply to the request with this number takes, in seconds."""
    median, sigma = behaviour.latency_ms
    if behaviour.delay == "zero" or median == 0.0:
        return 0.0
    if behaviour.delay == "constant":
        return median / 1000.0
    return Random(f"latency\n{behaviour.seed}\n{number}").lognormvariate(math.log(median / 1000.0), sigma)


def replied(behaviour: Behaviour, prompt: Prompt, graded: Graded, fault: FaultKind | None, turn: int) -> Reply:
    """What the model says, spoilt by the fault if it is one of the model's.

    Args:
        behaviour: whether the model thinks aloud.
        prompt: what was asked.
        graded: the grades.
        fault: the fault, or None.
        turn: how many requests of this protocol had the same fault before.
    """
    thoughts = graded.thoughts if behaviour.thinking else ""
    text, finish = graded.text, "stop"
    if fault is FaultKind.REFUSAL:
        blocked = turn % 2 == 1
        return Reply("", "", "refusal", blocked, prompt.tokens, 0, 0 if blocked else tokens(REFUSED))
    if fault is FaultKind.BAD_JSON_REPLY:
        text = _no_json(graded, turn)
    elif fault is FaultKind.WRONG_SCHEMA:
        text = _wrong(graded, turn)
    most = prompt.max_tokens if prompt.max_tokens is not None else tokens(thoughts) + tokens(text)
    if fault is FaultKind.TRUNCATED:
        most = min(most, tokens(thoughts) + tokens(text) // 2)
    if most < tokens(thoughts) + tokens(text):
        thoughts, finish = cut(thoughts, most), "length"
        text = cut(text, most - tokens(thoughts))
    return Reply(
        text=text,
        thoughts=thoughts,
        finish="length" if finish == "length" else "stop",
        prompt_blocked=False,
        tokens_in=prompt.tokens,
        tokens_thought=tokens(thoughts),
        tokens_text=tokens(text),
    )


def _no_json(graded: Graded, turn: int) -> str:
    """Broken off, a trailing brace too few and a comma too many, and plain prose, in turn."""
    return (
        graded.text[: len(graded.text) * 2 // 3],
        graded.text.replace('"', "'").replace("}", ",, "),
        "I would grade it about half way in all respects.",
    )[turn % 3]


def _wrong(graded: Graded, turn: int) -> str:
    """A dimension missing, a text, a number above 1, and NaN, in turn; another dimension each time."""
    names = list(graded.grades)
    name = names[turn % len(names)]
    reply: dict[str, object] = {"reason": graded.reason, **graded.grades}
    if turn % 4 == 0:
        del reply[name]
    else:
        reply[name] = ("high", 1.7, math.nan)[turn % 4 - 1]
    return json.dumps(reply)
