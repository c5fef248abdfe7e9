"""Learning from groups: every row of a batch becomes several episodes, to be compared with each other."""

from __future__ import annotations

from typing import Any

from rc1_lib.training.episode_judge import EpisodeJudge
from rc1_lib.training.strategies.ppo import PPO


class Groups(PPO):
    """Plays the rows of a batch as strategy `ppo` does, each of them several times.

    `trajectories` and `scores` are those of all takes. `solved` has one entry a row: whether every take of it solved
    it, since a row that some takes fail on is one to learn more from.
    """

    name = "groups"

    def __init__(self, judge: EpisodeJudge | None, size: int) -> None:
        """Takes who scores episodes, where that has weight in the reward, and how many takes of a row are played."""
        super().__init__(judge)
        self._size = size

    def on_batch(self, batch: dict[str, Any]) -> dict[str, float]:
        """Play every take of the batch's `rows`; returns what strategy `ppo` does, over all of them."""
        takes = batch | {
            "rows": [row for row in batch["rows"] for _ in range(self._size)],
            "keys": [f"{key}/{take}" for key in batch["keys"] for take in range(self._size)],
        }
        measured = super().on_batch(takes)
        batch |= {name: takes[name] for name in ("trajectories", "scores")}
        firsts = range(0, len(takes["rows"]), self._size)
        batch["solved"] = [all(takes["solved"][first : first + self._size]) for first in firsts]
        return measured
