"""Playing many episodes at once with one model.

Rows that write advance together, a token each at every step. A row whose turn has ended is set aside with its keys and
values until enough rows have an answer of the world to read; these read theirs together and go on writing. So nothing
is read twice and nothing is ever tokenised again: a trajectory holds exactly the tokens that the model saw.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
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
from rc1_lib.training.ranks.shards import ONE, Shards
from rc1_lib.training.rollout.decoder import Decoder, Decoding, check_decoding, context_of
from rc1_lib.training.rollout.growing_decoder import GrowingDecoder
from rc1_lib.training.rollout.sampling_weights import merged
from rc1_lib.training.rollout.slot_decoder import CudaGraphs, SlotDecoder
from rc1_lib.training.rollout.token_sampling import draw
from rc1_lib.training.rollout.trajectory import RolloutSampling, RunningEpisode, Start, Trajectory


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


@dataclass(frozen=True, slots=True)
class Batching:
    """How many rows and tokens go through the model at once; the result does not depend on it.

    Attributes:
        rows: episodes under way at once.
        prefill_tokens: tokens of prompts that are read at once, padding included.
        decoder: where keys and values are.
    """

    rows: int
    prefill_tokens: int
    decoder: Decoding = Decoding.GROWING

    def __post_init__(self) -> None:
        """Refuse what nothing fits into."""
        if self.rows < 1 or self.prefill_tokens < 1:
            raise ValueError(f"rows is {self.rows} and prefill_tokens is {self.prefill_tokens}, expected at least 1")


STAGE = "rollout"

READING_SHARE = 1 / 2
"""What the world answered is read once this share of the rows that write has an answer: together it costs less."""

FREE_SHARE = 1 / 4
"""New rows are read once this share of the batch is free: a prompt alone is dear to read."""


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
    order or `batching`. That holds up to the rounding of the model's arithmetic, which depends on the shape of a batch:
    in float32 about one token in ten thousand lies so close to a border that it may tip, in 16 bits many do. On one
    thread of a CPU the same call gives the same bits; on several it does not on every CPU.

    Args:
        model: any causal attention model of transformers, on any device, with or without LoRA layers of peft.
        chat: the tokens of the model's chat.
        starts: episodes that have not begun.
        sampling: temperature, bounds and seeds.
        batching: how much goes through the model at once.
        keep_states: whether trajectories hold the hidden states of their own tokens, which a value head can judge.

    Returns:
        One trajectory for each start, in the same order.

    Raises:
        RolloutError: when a prompt does not fit the model, its layers are not all attention, or it has diverged.
    """
    context = context_of(model.config)
    episodes = [RunningEpisode(start, chat, sampling, context) for start in starts]
    rows = min(batching.rows, max(1, len(episodes)))
    with merged(model), decoder_of(model, chat.pad_id, rows, batching.decoder).running() as decoder:
        _Table(decoder, episodes, sampling.temperature, batching, keep_states).play()
    return [episode.trajectory() for episode in episodes]


class _Table:
    """The rows that write, those that wait to read what the world answered, and those that have not begun."""

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
        # Long prompts first, so that chunks hold prompts of like length and later rows fit into the slots there are.
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
                self._part()

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
            self._part()

    def _resume(self) -> None:
        if not self._reading or len(self._reading) < len(self._writing) * READING_SHARE:
            return
        coming, self._reading = self._reading, []
        positions = [episode.position for episode in coming]
        with timed(Section.READ):
            logits_BV = self._decoder.resume([episode.feed(episode.known) for episode in coming], positions)
        self._take(coming, logits_BV)
        self._writing += coming
        self._part()

    def _take(self, episodes: Sequence[RunningEpisode], logits_BV: Tensor) -> None:
        uniforms_B = np.array([episode.uniform for episode in episodes])
        states: Sequence[Tensor | None] = [None] * len(episodes)
        if self._keep_states:
            states = self._decoder.states().unbind()
        with timed(Section.DRAW):
            drawn = draw(logits_BV, uniforms_B, self._temperature)
        with timed(Section.WORLD):
            for episode, token, logprob, state_D in zip(episodes, *drawn, states, strict=True):
                episode.take(token, logprob, state_D)
        self._tokens += len(episodes)

    def _part(self) -> None:
        """Let those go whose turn has ended: to read what the world answered, or for good."""
        kept = [row for row, episode in enumerate(self._writing) if episode.known == 1 and not episode.over]
        if len(kept) == len(self._writing):
            return
        aside = [row for row, episode in enumerate(self._writing) if episode.known > 1 and not episode.over]
        order = self._decoder.part(kept, aside)
        over = len(self._writing) - len(kept) - len(aside)
        self._reading += [self._writing[row] for row in aside]
        self._writing = [self._writing[row] for row in order]
        if over:
            under_way = len(self._waiting) + len(self._writing) + len(self._reading)
            rate = self._tokens / max(time.monotonic() - self._started, 1e-9)
            report_progress(STAGE, self._total - under_way, self._total, f"{rate:,.0f} tokens sampled a second")


def decoder_of(model: PreTrainedModel, pad_id: int, rows: int, kind: Decoding) -> Decoder:
    """A decoder of that kind.

    Raises:
        RolloutError: when the model is none that it takes, or is not where it works.
    """
    match kind:
        case Decoding.GROWING:
            return GrowingDecoder(model, pad_id, rows)
        case Decoding.SLOTS:
            return SlotDecoder(model, pad_id, rows)
        case Decoding.GRAPHS:
            check_decoding(kind, model.device)
            return SlotDecoder(model, pad_id, rows, CudaGraphs().record)
