"""Metrics of episodes, for monitoring a training run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rc1_lib.config.step_metrics import ANSWERED, SAME_ANSWER
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus


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
