"""The local rubric as a provider: the same path as a live judge's, without anybody being asked or paid."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from rc1_lib.judge import rubric, transcript
from rc1_lib.judge.calls import Answer, Ask, CallFailedError, CallFault
from rc1_lib.records import Message
from rc1_lib.text import tokens


@cache
def version() -> str:
    """The rules are the model: another rule or another way of reading is another version."""
    modules = (rubric, transcript, tokens)
    sources = b"".join(Path(str(module.__file__)).read_bytes() for module in modules)
    return f"{rubric.NAME}-{hashlib.sha256(sources).hexdigest()[:12]}"


class LocalRubric:
    """Scores by rule. It is given the dialogue alone, so that it cannot see the gold answer."""

    def __init__(self) -> None:
        self.name = rubric.NAME
        self.model = version()
        self._last: tuple[Sequence[Message], rubric.Scored] | None = None

    async def ask(self, ask: Ask) -> Answer:
        """Score one dialogue.

        Raises:
            CallFailedError: when the dialogue holds nothing to score.
        """
        try:
            scored = self._scored(ask.messages)
        except ValueError as error:
            raise CallFailedError(CallFault.REJECTED, str(error)) from None
        lowest = min(scored.scores, key=lambda name: scored.scores[name])
        reply = {"reason": f"By rule; the lowest grade is for {lowest}.", **scored.scores}
        return Answer(
            text=json.dumps(reply),
            model=self.model,
            request_id=uuid.uuid4().hex,
            tokens_in=0,
            tokens_out=0,
            billable=scored.billable,
            finish="stop",
        )

    def _scored(self, messages: Sequence[Message]) -> rubric.Scored:
        """The samples of a dialogue are asked for one after the other, and all get the same grades."""
        if self._last is None or self._last[0] is not messages:
            self._last = messages, rubric.score(messages)
        return self._last[1]

    async def aclose(self) -> None:
        """Nothing is open."""
