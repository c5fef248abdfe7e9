"""How an episode ended, and whether its answer is right by the task's rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rc1_lib.answer_rules.refusals import declines
from rc1_lib.environment.world import World


class EpisodeStatus(StrEnum):
    """The state of an episode; all but the first are final."""

    RUNNING = "running"
    ANSWERED = "answered"
    """A message without tool calls: the final answer, right or wrong."""
    DECLINED = "declined"
    """The same, but it gives no answer: a refusal, or that it cannot be known."""
    MAX_TURNS = "max_turns"
    """The last allowed turn still called tools."""
    MAX_TOKENS = "max_tokens"
    """The token limit was reached, in a turn of the model or in the tools' results."""
    TOOL_ERRORS = "tool_errors"
    """More failed tool calls than allowed."""
    MALFORMED = "malformed"
    """More malformed turns than allowed."""


@dataclass(frozen=True, slots=True)
class EpisodeOutcome:
    """The outcome of an episode.

    Attributes:
        status: how it ended.
        answer: the final answer; empty if there was none.
        right: whether the answer is right.
        needs: whether a piece was missing.
        obtained: whether the user gave it.
        asked: calls of `ask_user`.
        off_target: questions for something else while a piece was missing.
        turns: messages of the model, including malformed ones.
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
        """Right, and either nothing was missing or the user gave the missing piece."""
        return self.right and (self.obtained or not self.needs)

    @property
    def lucky(self) -> bool:
        """Right without the missing piece: a guess, which does not count as success."""
        return self.right and not self.solved


def outcome_of(
    world: World, status: EpisodeStatus, answer: str, *, turns: int, malformed: int, tokens: int
) -> EpisodeOutcome:
    """The outcome of the actions in `world`; without a final answer it is never right.

    A wrong answer that gives none is `declined`: a policy that learns to refuse is another finding than one that errs.
    """
    right = status is EpisodeStatus.ANSWERED and world.is_right(answer)
    if status is EpisodeStatus.ANSWERED and not right and declines(answer):
        status = EpisodeStatus.DECLINED
    return EpisodeOutcome(
        status=status,
        answer=answer,
        right=right,
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
