"""Strategies: what to learn from a batch. The policy's own episodes, groups of them, or demonstrations."""

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

    `solved` has one entry per row. Episodes that the judge left unscored are not in `trajectories` and `scores`, so
    nothing is learned from them.
    """

    name = "ppo"

    def __init__(self, judge: EpisodeJudge | None = None) -> None:
        """Create the strategy with the judge that scores episodes, if it has weight in the reward."""
        self._judge = judge

    def attach_engine(self, engine: Engine) -> None:
        """Keep the engine, which must be able to play.

        Raises:
            ConfigError: if it cannot.
        """
        self._engine = _require_policy_engine(engine, self.name)

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Play the batch's `rows` and return metrics of the episodes, with the mean of every term of the reward.

        Raises:
            RC1Error: if the judge scored too few of them.
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
            scores = None if self._judge is None else self._judge.score([one.messages for one in played])
        values = [None] * len(played) if scores is None else scores.values
        kept = [each for each in zip(played, rows, values, strict=True) if scores is None or each[2] is not None]
        terms = [engine.playground.terms(one, row, judged) for one, row, judged in kept]
        batch["trajectories"] = [one for one, _, _ in kept]
        batch["scores"] = [each.total for each in terms]
        batch["kinds"] = [f"{row['task']}, {row['needs_clarification']}" for _, row, _ in kept]
        batch["solved"] = [one.outcome.solved for one in played]
        names = ("success", "judge", "penalty", "format", "turns", "factor")
        return {
            **summary([one.outcome for one in played]),
            **({} if scores is None else scores.metrics()),
            **{f"reward/{name}": fmean(getattr(each, name) for each in terms) for name in names},
        }


class Groups(PPO):
    """Plays each row of a batch several times, so that its rollouts can be compared with each other.

    `trajectories` and `scores` hold all rollouts. `solved` has one entry per row: whether all its rollouts solved it. A
    row on which some rollouts fail has more to teach.
    """

    name = "groups"

    def __init__(self, judge: EpisodeJudge | None, size: int) -> None:
        """Create the strategy with the judge, if it has weight in the reward, and the rollouts per row."""
        super().__init__(judge)
        self._size = size

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Play all rollouts of the batch's `rows` and return the metrics over all of them."""
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
    """Adds the dialogues of a batch's rows as tokenized `demonstrations`. Rows of a file already are.

    It marks no row as solved or unsolved, so no row is repeated early: all rows come from passes over the pool.
    """

    def attach_engine(self, engine: Engine) -> None:
        """Keep the engine. For rows of the pool it must have a chat format."""
        self._engine = engine

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Tokenize the batch's `rows` and return the numbers of rows and of trained tokens.

        Raises:
            ConfigError: if the engine has no chat format.
        """
        if "demonstrations" not in batch:
            form = _require_policy_engine(self._engine, "demonstrations").playground.form
            with timed(Section.ENCODE):
                batch["demonstrations"] = [Demonstration.of(row, form) for row in batch["rows"]]
        found = batch["demonstrations"]
        return {"rows": float(len(found)), "label_tokens": float(sum(sum(one.action_mask) for one in found))}


def _require_policy_engine(engine: Engine, strategy: str) -> PolicyEngine:
    if not isinstance(engine, PolicyEngine):
        raise ConfigError(
            f"training.strategy: found '{strategy}', but the engine {type(engine).__name__} plays no episodes; "
            f"derive it from rc1_lib.training.engine.PolicyEngine, or use another engine"
        )
    return engine
