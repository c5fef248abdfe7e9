"""How an episode ended, whether its answer is right by the task's rule, and metrics over episodes."""

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
    """The model gave a final answer, right or wrong: a message without tool calls."""
    DECLINED = "declined"
    """The final message gives no answer: it refuses, or says that the answer cannot be known."""
    MAX_TURNS = "max_turns"
    """The last allowed turn still called tools."""
    MAX_TOKENS = "max_tokens"
    """The token limit was reached, in a turn of the model or in a tool's result."""
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
        needs: whether information was missing.
        obtained: whether the user gave it.
        asked: number of `ask_user` calls.
        off_target: number of questions for something else while information was missing.
        turns: number of the model's messages, including malformed ones.
        hops: number of `wiki` and `calc` calls.
        tool_errors: number of failed calls.
        malformed: number of malformed turns.
        tokens: tokens of the model's messages and of all observations.
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
        """Whether the answer is right, and either nothing was missing or the user gave what was."""
        return self.right and (self.obtained or not self.needs)

    @property
    def lucky(self) -> bool:
        """Whether the answer is right without asking for what was missing, which is not a success."""
        return self.right and not self.solved


def outcome_of(
    world: World, status: EpisodeStatus, answer: str, *, turns: int, malformed: int, tokens: int
) -> EpisodeOutcome:
    """Return the outcome of the actions in `world`; it is right only with a final answer.

    A refusal is `declined` rather than `answered`, since a policy that learns to refuse is another finding than one
    that errs.
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
    """Compute means over the episodes of one step. A metric without a case is left out rather than 0.

    `env/*` are RC1's own metrics: success, right answers, answers right without asking (`env/lucky`, of the episodes
    that lack the missing piece), declined answers, clarification recall, rate of needless clarifications, and the share
    of the most frequent answer. `num_turns/mean`, `tool_call_counts/mean` and
    `response_length/clip_ratio` have verl's names.
    """
    return {name: value for name, value in _metrics(outcomes).items() if value is not None}


def _metrics(outcomes: Sequence[EpisodeOutcome]) -> dict[str, float | None]:
    needed = [outcome for outcome in outcomes if outcome.needs]
    clear = [outcome for outcome in outcomes if not outcome.needs]
    return {
        "env/success": _mean(outcome.solved for outcome in outcomes),
        "env/success_needed": _mean(outcome.solved for outcome in needed),
        "env/success_clear": _mean(outcome.solved for outcome in clear),
        "env/right": _mean(outcome.right for outcome in outcomes),
        "env/right_needed": _mean(outcome.right for outcome in needed),
        "env/right_clear": _mean(outcome.right for outcome in clear),
        "env/lucky": _mean(outcome.lucky for outcome in needed if not outcome.obtained),
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
    """Return the share of the most frequent answer, ignoring case; None if there are fewer than `ANSWERED`."""
    if len(answers) < ANSWERED:
        return None
    return max(Counter(answer.strip().casefold() for answer in answers).values()) / len(answers)


def _mean(values: Iterable[float]) -> float | None:
    found = [float(value) for value in values]
    return sum(found) / len(found) if found else None
