"""Strategies: what is learned from a batch. The policy's own episodes, groups of them, or dialogues that are given."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from rc1_lib.environment.outcome import summary
from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Engine
from rc1_lib.training.engine import PolicyEngine
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.updates.batch import Demonstration


class PPO:
    """Plays the rows of a batch and adds `trajectories`, `scores` and `solved`.

    `solved` has one entry a row. Where a judge has weight in the reward, `trajectories` and `scores` are without the
    episodes that it left unscored: nothing is learned from them.

    Attributes:
        name: as the configuration has it.
    """

    name = "ppo"

    def __init__(self, judge: EpisodeJudge | None = None) -> None:
        """Takes who scores episodes, where that has weight in the reward."""
        self._judge = judge

    def attach_engine(self, engine: Engine) -> None:
        """Takes an engine with a policy to play with.

        Raises:
            ConfigError: when the engine has none.
        """
        self._engine = _that_plays(engine, self.name)

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Play the batch's `rows`; returns figures of the episodes and the mean of every term of the reward.

        Raises:
            RC1Error: when the judge cannot score enough of them.
        """
        engine, rows = self._engine, batch["rows"]
        played = engine.play(
            rows,
            batch["keys"],
            temperature=engine.temperature,
            seed=engine.seed,
            iteration=batch["step"],
            to_learn=True,
        )
        with timed(Section.JUDGE):
            scores = None if self._judge is None else self._judge.score([one.messages for one in played], engine.seed)
        values = [None] * len(played) if scores is None else scores.values
        kept = [each for each in zip(played, rows, values, strict=True) if scores is None or each[2] is not None]
        terms = [engine.playground.terms(one, row, judged) for one, row, judged in kept]
        batch["trajectories"] = [one for one, _, _ in kept]
        batch["scores"] = [each.total for each in terms]
        batch["solved"] = [one.outcome.solved for one in played]
        names = ("success", "judge", "penalty", "format", "turns", "factor")
        return {
            **summary([one.outcome for one in played]),
            **({} if scores is None else scores.metrics()),
            **{f"reward/{name}": fmean(getattr(each, name) for each in terms) for name in names},
        }


class Groups(PPO):
    """Plays the rows of a batch as strategy `ppo` does, each of them several times, to be compared with each other.

    `trajectories` and `scores` are those of all rollouts. `solved` has one entry a row: whether every rollout of it
    solved it, since a row that some of them fail on is one to learn more from.
    """

    name = "groups"

    def __init__(self, judge: EpisodeJudge | None, size: int) -> None:
        """Takes who scores episodes, where that has weight in the reward, and how many rollouts a row has."""
        super().__init__(judge)
        self._size = size

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Play every rollout of the batch's `rows`; returns what strategy `ppo` does, over all of them."""
        rollouts = batch | {
            "rows": [row for row in batch["rows"] for _ in range(self._size)],
            "keys": [f"{key}/{number}" for key in batch["keys"] for number in range(self._size)],
        }
        measured = super().on_batch(rollouts)
        batch |= {name: rollouts[name] for name in ("trajectories", "scores")}
        firsts = range(0, len(rollouts["rows"]), self._size)
        batch["solved"] = [all(rollouts["solved"][first : first + self._size]) for first in firsts]
        return measured


class Demonstrations:
    """Adds the dialogues of a batch's rows as tokens, `demonstrations`; rows of a file come as such.

    No row is solved or not, so that none comes again before its turn: a step's rows are passes over the pool alone.
    """

    def attach_engine(self, engine: Engine) -> None:
        """Takes any engine; the pool's dialogues need one with a chat format."""
        self._engine = engine

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Encode the batch's `rows`; returns how many there are, and how many of their tokens are learned.

        Raises:
            ConfigError: when the engine has no chat format.
        """
        if "demonstrations" not in batch:
            form = _that_plays(self._engine, "demonstrations").playground.form
            with timed(Section.ENCODE):
                batch["demonstrations"] = [Demonstration.of(row, form) for row in batch["rows"]]
        found = batch["demonstrations"]
        return {"rows": float(len(found)), "label_tokens": float(sum(sum(one.own) for one in found))}


def _that_plays(engine: Engine, strategy: str) -> PolicyEngine:
    if not isinstance(engine, PolicyEngine):
        raise ConfigError(
            f"training.strategy: found '{strategy}', but the engine {type(engine).__name__} plays no episodes; "
            f"derive it from rc1_lib.training.engine.PolicyEngine, or take another engine"
        )
    return engine
