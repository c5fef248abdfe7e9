"""Play many episodes at once with one model.

All writing rows advance together, one token per step. When a row's turn ends, it is paused with its keys and values
until enough rows have a reply of the environment to read. Then these are prefilled together and go on. So nothing is
processed twice or tokenized again: a trajectory holds exactly the tokens that the model saw.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Protocol

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from rc1_lib.config.run_config import RunConfig
from rc1_lib.environment.episode import Episode
from rc1_lib.environment.rewards import RewardSettings, RewardTerms, reward_terms
from rc1_lib.environment.turn import Limits
from rc1_lib.environment.world import World
from rc1_lib.records import MeasuredRow
from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.ranks.shards import ONE_SHARD, Shards
from rc1_lib.training.rollout.asking import Asking, Ban, opening_of_a_question
from rc1_lib.training.rollout.decoder import Decoder, context_of, draw
from rc1_lib.training.rollout.sampling_weights import merged
from rc1_lib.training.rollout.trajectory import RolloutSampling, RunningEpisode, Start, Trajectory


class Plays(Protocol):
    """What an evaluation needs: something whose policy can play episodes."""

    def play(
        self, rows: Sequence[MeasuredRow], keys: Sequence[str], *, temperature: float, seed: int, iteration: int
    ) -> list[Trajectory]:
        """Play every row once, see `PolicyEngine.play`."""
        ...


class Playground:
    """Plays rows with a model and computes the reward terms of each episode."""

    def __init__(self, config: RunConfig, form: ChatFormat) -> None:
        """Read limits and reward settings from the configuration.

        Args:
            form: chat format, which turns dialogues into tokens.
        """
        training = config.training
        self.form = form
        self._limits = Limits.of(training.limits)
        rollout = training.rollout
        self._batching = Batching(rollout.rows, PREFILL_TOKENS)
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
        shards: Shards = ONE_SHARD,
        asking: Sequence[Asking] | None = None,
        shown: Sequence[int] = (),
    ) -> list[Trajectory]:
        """Play every row once, each shard as a batch of its own.

        Args:
            model: a causal model with the chat format's tokenizer.
            keys: one name per episode, which seeds its random numbers.
            temperature: 0 means greedy.
            seed: decides the sampled tokens, together with `iteration` and the key.
            iteration: training step.
            keep_states: whether trajectories keep the hidden states of their action tokens.
            shards: how the rows are divided. Every process calls this with the same arguments.
            asking: who decides in each episode whether it asks; None: the policy in all.
            shown: tokens of dialogues that every prompt shows as examples.
        """
        assert len(rows) == len(keys), f"{len(rows)} rows, {len(keys)} keys"
        decided = asking or [Asking.FREE] * len(rows)
        sampling = self.sampling(temperature, seed, iteration)
        parts = shards.split(range(len(rows)), [_prompt_length(row) for row in rows])

        def played(part: Sequence[int]) -> list[Trajectory]:
            starts = [self._deciding(self.start(rows[at], keys[at]), decided[at], shown) for at in part]
            return roll_out(model, self.form, starts, sampling, self._batching, keep_states=keep_states)

        mine = {shard: played(parts[shard]) for shard in shards.mine}
        found = list(mine.values())
        if not shards.alone:
            travelling = {shard: [each.parts() for each in part] for shard, part in mine.items()}
            found = [[Trajectory.of(each) for each in part] for part in shards.all_gather(travelling)]
        gathered = zip(itertools.chain(*parts), itertools.chain(*found), strict=True)
        return [trajectory for _, trajectory in sorted(gathered, key=itemgetter(0))]

    @cached_property
    def _ban(self) -> Ban:
        return Ban(self.form)

    @cached_property
    def _opening(self) -> tuple[int, ...]:
        return opening_of_a_question(self.form)

    def start(self, row: MeasuredRow, key: str) -> Start:
        """Create a new episode on a row; `key` seeds its random numbers."""
        return Start(str(row["id"]), key, Episode(World(row), self._limits, self.form.count))

    def _deciding(self, start: Start, asking: Asking, shown: Sequence[int]) -> Start:
        return replace(
            start,
            ban=self._ban if asking == Asking.NEVER else None,
            opening=self._opening if asking == Asking.FIRST else (),
            shown=tuple(shown),
        )

    def sampling(self, temperature: float, seed: int, iteration: int) -> RolloutSampling:
        """Return how to sample tokens, with the configured limits of a turn."""
        return RolloutSampling(temperature, self._turn_tokens, seed, iteration, self._thought_tokens)

    def terms(self, trajectory: Trajectory, row: MeasuredRow, judged: float | None = None) -> RewardTerms:
        """Compute the reward of an episode on `row`, term by term.

        Args:
            judged: calibrated score of its dialogue in [0, 1], or None.

        Raises:
            RC1Error: if the judge has weight but the dialogue is unscored.
        """
        return reward_terms(trajectory.outcome, row["bucket"], self._settings, judged=judged)


def _prompt_length(row: MeasuredRow) -> int:
    """Count the characters before the first answer, to balance shards."""
    before = itertools.takewhile(lambda message: message["role"] != "assistant", row["messages"])
    return sum(len(message["content"] or "") for message in before)


@dataclass(frozen=True, slots=True)
class Batching:
    """How many rows and tokens go through the model at once. Results do not depend on it.

    Attributes:
        rows: episodes in progress at once.
        prefill_tokens: prompt tokens in one forward pass, including padding.
    """

    rows: int
    prefill_tokens: int

    def __post_init__(self) -> None:
        """Reject sizes below 1."""
        if self.rows < 1 or self.prefill_tokens < 1:
            raise ValueError(f"rows is {self.rows} and prefill_tokens is {self.prefill_tokens}, expected at least 1")


STAGE = "rollout"

PREFILL_TOKENS = 8192
"""Prompt tokens of a run in one forward pass, as many as an update of the published run has."""

READING_SHARE = 1 / 2
"""Replies of the environment are read when this share of the writing rows has one: reading together is cheaper."""

FREE_SHARE = 1 / 4
"""New prompts are read when this share of the batch is free: reading a single prompt is expensive."""


def roll_out(
    model: PreTrainedModel,
    chat: ChatFormat,
    starts: Sequence[Start],
    sampling: RolloutSampling,
    batching: Batching,
    *,
    keep_states: bool = False,
) -> list[Trajectory]:
    """Play every episode of `starts` to its end.

    What a row samples depends on the weights, its dialogue, `sampling` and its own key, not on the other rows, their
    order or `batching`, except for rounding, which depends on the shape of a batch: in float32 about one token in ten
    thousand is so close to a boundary that it may change, in 16 bits many are. On one CPU thread the same call gives
    the same bits; on several threads not on every CPU.

    Args:
        model: any causal attention model of transformers, on any device, with or without LoRA layers of peft.
        chat: the model's chat format.
        starts: episodes that have not begun.
        sampling: temperature, limits and seeds.
        batching: how much goes through the model at once.
        keep_states: whether trajectories keep the hidden states of their action tokens, for a value head.

    Returns:
        One trajectory for each start, in the same order.

    Raises:
        RolloutError: if a prompt does not fit into the context, or the model has layers other than attention.
        DivergedError: if logits are not finite.
    """
    context = context_of(model.config)
    episodes = [RunningEpisode(start, chat, sampling, context) for start in starts]
    rows = min(batching.rows, max(1, len(episodes)))
    with merged(model), Decoder(model, chat.pad_id, rows).running() as decoder:
        _RolloutState(decoder, episodes, sampling.temperature, batching, keep_states).play()
    return [episode.trajectory() for episode in episodes]


class _RolloutState:
    """The state of a rollout: rows that write, rows that wait to read a reply, and episodes that have not begun."""

    def __init__(
        self,
        decoder: Decoder,
        episodes: Sequence[RunningEpisode],
        temperature: float,
        batching: Batching,
        keep_states: bool,
    ) -> None:
        self._decoder, self._temperature, self._batching = decoder, temperature, batching
        self._keep_states = keep_states
        # Popped from the end: long prompts first, so that a chunk has similar lengths and later rows fit into
        # the slots.
        self._waiting = sorted(episodes, key=lambda episode: len(episode.prompt))
        self._writing: list[RunningEpisode] = []
        self._reading: list[RunningEpisode] = []
        self._total, self._tokens = len(episodes), 0
        self._started = time.monotonic()

    def play(self) -> None:
        while self._waiting or self._reading or self._writing:
            self._admit()
            self._resume()
            if self._writing:
                tokens = [episode.feed(1)[0] for episode in self._writing]
                with timed(Section.DECODE):
                    logits_BV = self._decoder.step(tokens, [episode.position - 1 for episode in self._writing])
                self._take(self._writing, logits_BV)
                self._regroup()

    def _admit(self) -> None:
        under_way = len(self._writing) + len(self._reading)
        free = self._batching.rows - under_way
        if under_way and free < self._batching.rows * FREE_SHARE:
            return
        coming = min(free, len(self._waiting))
        while coming:
            width = len(self._waiting[-1].prompt)
            chunk = [self._waiting.pop() for _ in range(min(coming, max(1, self._batching.prefill_tokens // width)))]
            coming -= len(chunk)
            with timed(Section.READ):
                logits_BV = self._decoder.admit([episode.prompt for episode in chunk])
            self._take(chunk, logits_BV)
            self._writing += chunk
            self._regroup()

    def _resume(self) -> None:
        if not self._reading or len(self._reading) < len(self._writing) * READING_SHARE:
            return
        coming, self._reading = self._reading, []
        positions = [episode.position for episode in coming]
        with timed(Section.READ):
            logits_BV = self._decoder.resume([episode.feed(episode.known) for episode in coming], positions)
        self._take(coming, logits_BV)
        self._writing += coming
        self._regroup()

    def _take(self, episodes: Sequence[RunningEpisode], logits_BV: Tensor) -> None:
        uniforms_B = np.array([episode.uniform for episode in episodes])
        banned = {row: tokens for row, episode in enumerate(episodes) if (tokens := episode.banned)}
        forced = {row: token for row, episode in enumerate(episodes) if (token := episode.forced) is not None}
        if banned or forced:
            logits_BV = logits_BV.clone()
            for row, tokens in banned.items():
                logits_BV[row, tokens] = -math.inf
            for row, token in forced.items():
                logits_BV[row] = -math.inf
                logits_BV[row, token] = 0.0
        states: Sequence[Tensor | None] = [None] * len(episodes)
        if self._keep_states:
            states = self._decoder.states().unbind()
        with timed(Section.DRAW):
            drawn = draw(logits_BV, uniforms_B, self._temperature)
        with timed(Section.WORLD):
            for episode, token, logprob, state_D in zip(episodes, *drawn, states, strict=True):
                episode.take(token, logprob, state_D)
        self._tokens += len(episodes)

    def _regroup(self) -> None:
        """Remove rows whose turn has ended from the writing ones: paused until they read a reply, or finished."""
        kept = [row for row, episode in enumerate(self._writing) if episode.known == 1 and not episode.over]
        if len(kept) == len(self._writing):
            return
        paused = [row for row, episode in enumerate(self._writing) if episode.known > 1 and not episode.over]
        order = self._decoder.regroup(kept, paused)
        over = len(self._writing) - len(kept) - len(paused)
        self._reading += [self._writing[row] for row in paused]
        self._writing = [self._writing[row] for row in order]
        if over:
            under_way = len(self._waiting) + len(self._writing) + len(self._reading)
            rate = self._tokens / max(time.monotonic() - self._started, 1e-9)
            report_progress(STAGE, self._total - under_way, self._total, f"{rate:,.0f} tokens sampled a second")
