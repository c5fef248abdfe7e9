"""Learning from episodes that the policy plays itself: rows become trajectories with scores."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from rc1_lib.environment.summary import summary
from rc1_lib.training.api import Engine
from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.player import player_for
from rc1_lib.training.spans import Part, span


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
        self._engine = player_for(self.name, engine)

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
        with span(Part.JUDGE):
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
