"""Rows as episodes: the world of each row, and the bounds, ready to be rolled out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import itemgetter
from typing import Protocol

from transformers import PreTrainedModel

from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.rewards import RewardSettings, RewardTerms, reward_terms
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.records import MeasuredRow
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.rollout.roll_out import roll_out
from rc1_lib.training.rollout.settings import Batching, Decoding, RolloutSampling, Start
from rc1_lib.training.rollout.trajectory import Trajectory


class Plays(Protocol):
    """What an evaluation needs to put questions: something whose policy plays episodes."""

    def play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], *, temperature: float, seed: int, iteration: int
    ) -> list[Trajectory]:
        """Play every row once, see `PolicyEngine.play`."""
        ...


class Playground:
    """Plays rows with a model, and says what each episode was worth."""

    def __init__(self, config: RunConfig, form: ChatFormat) -> None:
        """Reads limits and prices from the configuration.

        Args:
            config: of the run.
            form: how dialogues become tokens.
        """
        training = config.training
        self.form = form
        self._limits = Limits.of(training.limits)
        rollout = training.rollout
        self._batching = Batching(rollout.rows, rollout.prefill_tokens, Decoding(rollout.decoder))
        self._turn_tokens, self._thought_tokens = config.rollout_len, rollout.thought_tokens
        self._settings = RewardSettings.of(config)

    def play(
        self,
        model: PreTrainedModel,
        rows: Sequence[MeasuredRow],
        keys: Sequence[str],
        *,
        temperature: float,
        seed: int,
        iteration: int,
        keep_states: bool = False,
        shards: Shards = ONE,
    ) -> list[Trajectory]:
        """Play every row once, each shard as a batch of its own.

        Args:
            model: a causal model of the chat format's tokenizer.
            rows: of the pool's schema.
            keys: name each episode's random numbers.
            temperature: 0 is greedy.
            seed: with `iteration` and the key it decides what is sampled.
            iteration: of the training.
            keep_states: whether trajectories hold the hidden states of their own tokens.
            shards: how the rows are dealt out. Every process that has a share calls this with the same arguments.
        """
        assert len(rows) == len(keys), f"{len(rows)} rows, {len(keys)} keys"
        sampling = self.sampling(temperature, seed, iteration)
        parts = shards.deal(range(len(rows)), [_prompt_length(row) for row in rows])

        def played(part: Sequence[int]) -> list[Trajectory]:
            starts = [self.start(rows[at], keys[at]) for at in part]
            return roll_out(model, self.form, starts, sampling, self._batching, keep_states=keep_states)

        found = shards.all_gather({shard: played(parts[shard]) for shard in shards.mine})
        dealt = zip(itertools.chain(*parts), itertools.chain(*found), strict=True)
        return [trajectory for _, trajectory in sorted(dealt, key=itemgetter(0))]

    def start(self, row: MeasuredRow, key: str) -> Start:
        """A fresh episode on a row, whose random numbers bear this name."""
        return Start(str(row["id"]), key, Episode(World(row), self._limits, self.form.count))

    def sampling(self, temperature: float, seed: int, iteration: int) -> RolloutSampling:
        """How tokens are sampled, within the bounds of the configuration."""
        return RolloutSampling(temperature, self._turn_tokens, seed, iteration, self._thought_tokens)

    def terms(self, trajectory: Trajectory, row: MeasuredRow, judged: float | None = None) -> RewardTerms:
        """What an episode on `row` was worth, every term apart.

        Args:
            trajectory: the episode.
            row: what it was played on.
            judged: the calibrated score of its dialogue, in [0, 1]; None where there is none.

        Raises:
            RC1Error: when the judge has weight, but the dialogue is unscored.
        """
        return reward_terms(trajectory.outcome, row["bucket"], self._settings, judged=judged)


def _prompt_length(row: MeasuredRow) -> int:
    """Characters before the first answer: how much there is to read."""
    before = itertools.takewhile(lambda message: message["role"] != "assistant", row["messages"])
    return sum(len(message["content"] or "") for message in before)
