"""How an episode ended, and what it is worth by the rule of its task."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rc1_lib.environment.world import World


class EpisodeStatus(StrEnum):
    """Where an episode stands; all but the first are ends."""

    RUNNING = "running"
    ANSWERED = "answered"
    """A message without tool calls: the final answer, right or wrong."""
    MAX_TURNS = "max_turns"
    """The last turn allowed still called tools."""
    MAX_TOKENS = "max_tokens"
    """The tokens ran out, in a turn of the model or in what the tools returned."""
    TOOL_ERRORS = "tool_errors"
    """More failed tool calls than are forgiven."""
    MALFORMED = "malformed"
    """More malformed turns than are forgiven."""


@dataclass(frozen=True, slots=True)
class EpisodeOutcome:
    """What came of an episode.

    Attributes:
        status: how it ended.
        answer: the final answer; empty where there was none.
        right: whether the answer is right.
        needs: whether a piece was missing.
        obtained: whether the user gave it.
        asked: calls of `ask_user`.
        off_target: questions for something else while a piece was missing.
        turns: messages of the model, malformed ones included.
        hops: calls of `wiki` and `calc`.
        tool_errors: calls that failed.
        malformed: malformed turns.
        tokens: of the model's messages and of all observations.
    """

    status: EpisodeStatus
    answer: str
    right: bool
    needs: bool
    obtained: bool
    asked: int
    off_target: int
    turns: int
    hops: int
    tool_errors: int
    malformed: int
    tokens: int

    @property
    def solved(self) -> bool:
        """Right, and nothing was missing or the missing piece was obtained."""
        return self.right and (self.obtained or not self.needs)

    @property
    def lucky(self) -> bool:
        """Right although the missing piece was never obtained: a guess, which is no success."""
        return self.right and not self.solved


def outcome_of(
    world: World, status: EpisodeStatus, answer: str, *, turns: int, malformed: int, tokens: int
) -> EpisodeOutcome:
    """The outcome of what was done in `world`; without a final answer nothing is right."""
    return EpisodeOutcome(
        status=status,
        answer=answer,
        right=status is EpisodeStatus.ANSWERED and world.is_right(answer),
        needs=world.needs,
        obtained=world.obtained,
        asked=world.asked,
        off_target=world.off_target,
        turns=turns,
        hops=world.hops,
        tool_errors=world.errors,
        malformed=malformed,
        tokens=tokens,
    )
