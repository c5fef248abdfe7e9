"""One episode: a model's turns in an environment, within limits, as chat messages in the pool's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rc1_lib.environment.markers import defused
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus, outcome_of
from rc1_lib.environment.turn import Limits, Malformed, Turn, read_message, read_text
from rc1_lib.environment.world import World
from rc1_lib.records import Message, Row, ToolCall
from rc1_lib.rows.chat import counts_of
from rc1_lib.task_specs import answer_in
from rc1_lib.text.tokens import text_length

FORMAT_NOTE = "format"
"""The name of the message that says why a turn is malformed."""


class Episode:
    """The dialogue loop around an environment: parses turns, runs calls, counts tokens, and ends the episode.

    All calls of a turn are run, even in the last allowed turn. A turn without calls is the final answer. A malformed
    turn runs nothing; unless the limit is exceeded, the reply says why it is malformed.

    Attributes:
        messages: the whole dialogue so far, including the prompt, in the pool's format. Malformed turns are included as
            harmless text without calls, cut to `limits.turn_chars`.
        faults: the kind of error of every malformed turn, in order.
    """

    def __init__(self, world: World, limits: Limits, count: Callable[[str], int] = text_length) -> None:
        """Start an episode.

        Args:
            world: a fresh environment.
            count: counts the tokens of a text, for observations and for turns whose token count is not given.
        """
        self.world = world
        self.limits = limits
        self.status = EpisodeStatus.RUNNING
        self.messages: list[Message] = [*world.prompt]
        self.faults: list[str] = []
        self._count = count
        self._tokens = self._calls = 0
        self._answer = ""

    def say(self, text: str, *, tokens: int | None = None, cut: bool = False) -> list[Message]:
        """Take a turn as text in Qwen3's chat format.

        Args:
            text: what the model wrote, with or without the end mark.
            tokens: its number of tokens; if None, they are counted here.
            cut: whether the model was stopped in the middle of the turn, which ends the episode.

        Returns:
            The messages that answer the turn, which are also the last of `messages`. The model continues as long as the
            status is `RUNNING`.

        Raises:
            RuntimeError: when the episode is over.
        """
        return self._take(read_text(text, self.limits), text, tokens, cut)

    def send(self, message: Mapping[str, Any], *, tokens: int | None = None, cut: bool = False) -> list[Message]:
        """Take a turn as a chat message with parsed `tool_calls`; otherwise like `say`."""
        content = message.get("content") if isinstance(message, Mapping) else None
        turn = read_message(message, self.limits)
        if tokens is None and isinstance(turn, Turn):
            tokens = self._count(turn.content) + sum(self._count(call.arguments) for call in turn.calls)
        return self._take(turn, content if isinstance(content, str) else "", tokens, cut)

    def outcome(self) -> EpisodeOutcome:
        """Return the outcome of the episode so far."""
        return outcome_of(
            self.world,
            self.status,
            self._answer,
            turns=self._turns,
            malformed=len(self.faults),
            tokens=self._tokens,
        )

    def _take(self, turn: Turn | Malformed, text: str, tokens: int | None, cut: bool) -> list[Message]:
        if self.status is not EpisodeStatus.RUNNING:
            raise RuntimeError(f"the episode is over ({self.status}); start another one")
        seen = len(self.messages) + 1
        text = text[: self.limits.turn_chars]
        self._tokens += self._count(defused(text)) if tokens is None else tokens
        if cut or self._tokens > self.limits.tokens:
            self._append_text(text)
            self.status = EpisodeStatus.MAX_TOKENS
        elif isinstance(turn, Malformed):
            self._reject(turn, text)
        elif turn.calls:
            self._run(turn)
        else:
            self.messages.append({"role": "assistant", "content": turn.content})
            self._answer = answer_in(self.world.task, turn.content)
            self.status = EpisodeStatus.ANSWERED
        if self.status is EpisodeStatus.RUNNING:
            self._end_at_limit()
        return self.messages[seen:]

    @property
    def _turns(self) -> int:
        return counts_of(self.messages).turns

    def _append_text(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": defused(text).strip()})

    def _reject(self, turn: Malformed, text: str) -> None:
        self._append_text(text)
        self.faults.append(turn.fault)
        if len(self.faults) > self.limits.malformed:
            self.status = EpisodeStatus.MALFORMED
        else:
            self._observe(f"turn_{self._turns - 1}", FORMAT_NOTE, turn.sentence)

    def _run(self, turn: Turn) -> None:
        ids = [f"call_{self._calls + offset}" for offset in range(len(turn.calls))]
        self._calls += len(ids)
        calls: list[ToolCall] = [
            {"id": id_, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}}
            for id_, call in zip(ids, turn.calls, strict=True)
        ]
        self.messages.append({"role": "assistant", "content": turn.content, "tool_calls": calls})
        for id_, call in zip(ids, turn.calls, strict=True):
            self._observe(id_, call.tool, self.world.run(call).text)
        if self.world.errors > self.limits.tool_errors:
            self.status = EpisodeStatus.TOOL_ERRORS

    def _observe(self, id_: str, name: str, text: str) -> None:
        self._tokens += self._count(text)
        self.messages.append({"role": "tool", "tool_call_id": id_, "name": name, "content": text})

    def _end_at_limit(self) -> None:
        if self._tokens >= self.limits.tokens:
            self.status = EpisodeStatus.MAX_TOKENS
        elif self._turns >= self.limits.turns:
            self.status = EpisodeStatus.MAX_TURNS


def as_row(row: Row, episode: Episode) -> Row:
    """Replace the dialogue and actions of `row` by the episode's, for judge, rules and counts."""
    outcome = episode.outcome()
    return {
        **row,
        "messages": list(episode.messages),
        "asked": outcome.asked,
        "final": outcome.answer,
        "solved": outcome.solved,
        "lucky": outcome.lucky,
    }
