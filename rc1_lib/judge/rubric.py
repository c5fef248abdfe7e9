"""The local judge: a stand-in for a live one, with seven dimensions by simple rules. It costs nothing and says so.

It reads the dialogue alone, so that it cannot see the gold answer. It knows form, length and which words were said
before; it does not understand what a dialogue is about, and no team should train by its grades alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from rc1_lib.judge.calls import Answer, Ask, AttemptOutcome, CallFailedError
from rc1_lib.records import Message
from rc1_lib.rows import chat, transcript
from rc1_lib.rows.chat import ARGUMENT_OF, ASK
from rc1_lib.rows.transcript import Call, Transcript, read
from rc1_lib.text import tokens
from rc1_lib.text.tokens import tokenize

NAME = "rubric"
REASONING_WORDS = 6.0
"""Words before the answer after which 63 % of the reasoning's worth is reached."""
BRIEF_WORDS, SPARE_WORDS = 40, 60
"""Words of a final message that are never too many, and how many more halve what its brevity is worth."""


def score(messages: Sequence[Message]) -> dict[str, float]:
    """Judge one dialogue (chat format): a grade in [0, 1] by dimension.

    Raises:
        ValueError: when there is no assistant message to judge.
    """
    if not any(message.get("role") == "assistant" for message in messages):
        raise ValueError("the dialogue holds no assistant message, so there is nothing to judge")
    dialogue = read(messages)
    return {name: rule(dialogue) for name, rule in DIMENSIONS.items()}


def reply_to(messages: Sequence[Message]) -> str:
    """The grades of one dialogue as a judge's reply.

    Raises:
        ValueError: as `score`.
    """
    scores = score(messages)
    lowest = min(scores, key=lambda name: scores[name])
    return json.dumps({"reason": f"By rule; the lowest grade is for {lowest}.", **scores})


@cache
def version() -> str:
    """The rules are the model: another rule or another way of reading is another version."""
    files = (__file__, transcript.__file__, chat.__file__, tokens.__file__)
    sources = b"".join(Path(file).read_bytes() for file in files)
    return f"{NAME}-{hashlib.sha256(sources).hexdigest()[:12]}"


class LocalRubric:
    """The rubric as a provider: the same path as a live judge's, without anybody being asked or paid."""

    def __init__(self) -> None:
        self.name = NAME
        self._last: tuple[Sequence[Message], str] | None = None

    async def ask(self, ask: Ask) -> Answer:
        """Score one dialogue.

        Raises:
            CallFailedError: when the dialogue holds nothing to score.
        """
        # The samples of a dialogue are asked for one after the other, and all get the same grades.
        if self._last is None or self._last[0] is not ask.messages:
            try:
                self._last = ask.messages, reply_to(ask.messages)
            except ValueError as error:
                raise CallFailedError(AttemptOutcome.REJECTED, str(error)) from None
        return Answer(
            text=self._last[1], model=version(), request_id=uuid.uuid4().hex, tokens_in=0, tokens_out=0,
            billable=False, finish="stop",
        )  # fmt: skip

    async def aclose(self) -> None:
        """Nothing is open."""


def _answered(dialogue: Transcript) -> float:
    """1 where the dialogue ends with a marked answer that is not empty."""
    return float(bool(dialogue.answer))


def _grounded(dialogue: Transcript) -> float:
    """Share of the answer's words that the user or a tool said, times the share of the sums' numbers that were said.

    A bare yes or no is in nobody's words: it counts where anything was looked up or calculated.
    """
    if dialogue.is_verdict:
        return dialogue.sourced_share * any(call.name != ASK for call in dialogue.calls)
    said = {word for role, text in dialogue.spoken if role in {"user", "tool"} for word in tokenize(text)}
    answer = dialogue.answer
    return dialogue.sourced_share * sum(word in said for word in answer) / len(answer) if answer else 0.0


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
