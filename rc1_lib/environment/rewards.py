"""The reward of an episode, with every term separate.

    total = (success + judge) * factor - penalty - format - turns

As in `rc1_lib.reward.terms`, the factor does not scale the penalty: a needless question costs the same in every bucket.
All weights are settings.

Only a solved episode pays for its turns. Otherwise the shortest failure would be the best one, and doing nothing would
beat every honest attempt. If a right answer earns nothing (`success` is 0), every episode pays for its turns, since
then the answer rule must not decide anything.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import polars as pl

from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.outcome import EpisodeOutcome
from rc1_lib.errors import RC1Error
from rc1_lib.records import Bucket
from rc1_lib.reward.terms import (
    difficulty_factor,
    difficulty_factors,
    over_clarification_penalties,
    over_clarification_penalty,
)

MALFORMED = 0.1
"""Penalty of a malformed turn in training: about what a needless question costs."""


@dataclass(frozen=True, slots=True)
class RewardSettings:
    """The weights of the terms; all at least 0.

    Attributes:
        success: reward of a solved episode.
        judge: weight of the judge's score; at 0 no score is needed.
        alpha: penalty per question if nothing is missing.
        cap: number of questions from which further ones cost nothing.
        use_penalty: if False, needless questions are free.
        beta: how much more a hard row counts, and how much less an easy one.
        malformed: penalty per malformed turn.
        turn: penalty per turn of a solved episode, or of every episode if `success` is 0.
    """

    success: float
    judge: float
    alpha: float
    cap: int
    use_penalty: bool
    beta: float
    malformed: float
    turn: float

    @classmethod
    def of(cls, config: RunConfig) -> RewardSettings:
        """Read the weights of a run's training; penalty and factor are the ones that the gates use."""
        reward = config.training.reward
        return cls(
            success=reward.success,
            judge=reward.judge,
            alpha=config.overclar.alpha,
            cap=config.overclar.cap,
            use_penalty=config.use_overclar_penalty,
            beta=config.difficulty_beta,
            malformed=MALFORMED,
            turn=reward.turn,
        )

    def __post_init__(self) -> None:
        """Reject negative weights and penalties."""
        for field in fields(self):
            if not getattr(self, field.name) >= 0:
                raise ValueError(f"reward setting '{field.name}' is {getattr(self, field.name)}; expected at least 0")


@dataclass(frozen=True, slots=True)
class RewardTerms:
    """The terms of one episode's reward; `penalty`, `format` and `turns` are costs, at least 0."""

    success: float
    judge: float
    factor: float
    penalty: float
    format: float
    turns: float

    @property
    def total(self) -> float:
        """The reward."""
        return (self.success + self.judge) * self.factor - self.penalty - self.format - self.turns


def reward_terms(
    outcome: EpisodeOutcome, bucket: Bucket, settings: RewardSettings, *, judged: float | None = None
) -> RewardTerms:
    """Compute the reward terms of an episode.

    Args:
        outcome: the outcome; a right answer without the missing information is no success.
        bucket: the difficulty of its row.
        judged: the calibrated score of its dialogue in [0, 1]; None if it has no score.

    Raises:
        RC1Error: when the judge has weight but the dialogue has no score.
    """
    if settings.judge and judged is None:
        raise RC1Error(
            f"training.reward.judge is {settings.judge:g}, but this episode has no score from the judge. A missing "
            f"score is not 0: leave the episode out, or set the judge's weight to 0"
        )
    penalty = over_clarification_penalty(outcome.asked, outcome.needs, alpha=settings.alpha, cap=settings.cap)
    return RewardTerms(
        success=settings.success * outcome.solved,
        judge=settings.judge * judged if settings.judge and judged is not None else 0.0,
        factor=difficulty_factor(bucket, settings.beta),
        penalty=penalty if settings.use_penalty else 0.0,
        format=settings.malformed * outcome.malformed,
        turns=settings.turn * outcome.turns if outcome.solved or not settings.success else 0.0,
    )


def training_rewards(settings: RewardSettings, malformed: pl.Expr | None = None) -> pl.Expr:
    """Return `reward_terms(...).total` as an expression over columns, equal to the last bit.

    Reads `solved`, `main` (the judge's score), `bucket`, `clarifications`, `needs_clarification` and `turns`. The
    result is null if the judge has weight and `main` is null.

    Args:
        malformed: number of malformed turns of each dialogue; by default 0, as in scripted dialogues.
    """
    solved = pl.col("solved").cast(pl.Float64)
    success = settings.success * solved
    judge = settings.judge * pl.col("main") if settings.judge else pl.lit(0.0)
    factor = difficulty_factors(pl.col("bucket"), settings.beta)
    penalty = pl.lit(0.0)
    if settings.use_penalty:
        asked, needs = pl.col("clarifications"), pl.col("needs_clarification")
        penalty = over_clarification_penalties(asked, needs, alpha=settings.alpha, cap=settings.cap)
    faults = settings.malformed * (pl.lit(0) if malformed is None else malformed)
    turns = settings.turn * pl.col("turns") * (solved if settings.success else 1.0)
    return (success + judge) * factor - penalty - faults - turns
