"""How an episode ended, whether its answer is right by the task's rule, and the metrics of a step's episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rc1_lib.answer_rules.refusals import declines
from rc1_lib.config.step_metrics import ANSWERED, SAME_ANSWER
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


def summary(outcomes: Sequence[EpisodeOutcome]) -> dict[str, float]:
    """Means over the episodes of one step. A metric without any case is left out; it is never 0.

    `env/*` are RC1's own: success, lucky guesses, declined answers, clarification recall, needless-clarification rate,
    and the share of the most frequent answer. `num_turns/mean`, `tool_call_counts/mean` and
    `response_length/clip_ratio` have verl's names.
    """
    return {name: value for name, value in _figures(outcomes).items() if value is not None}


def _figures(outcomes: Sequence[EpisodeOutcome]) -> dict[str, float | None]:
    needed = [outcome for outcome in outcomes if outcome.needs]
    clear = [outcome for outcome in outcomes if not outcome.needs]
    return {
        "env/success": _mean(outcome.solved for outcome in outcomes),
        "env/success_needed": _mean(outcome.solved for outcome in needed),
        "env/success_clear": _mean(outcome.solved for outcome in clear),
        "env/lucky": _mean(outcome.lucky for outcome in outcomes),
        "env/declined": _mean(outcome.status is EpisodeStatus.DECLINED for outcome in outcomes),
        "env/asked_needed": _mean(outcome.asked > 0 for outcome in needed),
        "env/asked_clear": _mean(outcome.asked > 0 for outcome in clear),
        "env/malformed": _mean(outcome.malformed > 0 for outcome in outcomes),
        "env/tool_errors": _mean(outcome.tool_errors for outcome in outcomes),
        "num_turns/mean": _mean(outcome.turns for outcome in outcomes),
        "tool_call_counts/mean": _mean(outcome.hops + outcome.asked for outcome in outcomes),
        "response_length/clip_ratio": _mean(outcome.status is EpisodeStatus.MAX_TOKENS for outcome in outcomes),
        SAME_ANSWER: _most_frequent([outcome.answer for outcome in outcomes if outcome.answer.strip()]),
    }


def _most_frequent(answers: Sequence[str]) -> float | None:
    """The share of the most frequent answer, ignoring case; None if there are few answers."""
    if len(answers) < ANSWERED:
        return None
    return max(Counter(answer.strip().casefold() for answer in answers).values()) / len(answers)


def _mean(values: Iterable[float]) -> float | None:
    found = [float(value) for value in values]
    return sum(found) / len(found) if found else None
