"""Playing many episodes at once with one model.

Rows that write advance together, a token each at every step. A row whose turn has ended is set aside with its keys and
values until enough rows have an answer of the world to read; these read theirs together and go on writing. So nothing
is read twice and nothing is ever tokenised again: a trajectory holds exactly the tokens that the model saw.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from torch import Tensor
from transformers import PreTrainedModel

from rc1_lib.runtime.progress import report_progress
from rc1_lib.training.profiler import Section, timed
from rc1_lib.training.rollout.decoder import Decoder
from rc1_lib.training.rollout.decoding import context_of, decoding
from rc1_lib.training.rollout.running_episode import RunningEpisode
from rc1_lib.training.rollout.sampling_weights import merged
from rc1_lib.training.rollout.settings import Batching, ChatTokens, RolloutSampling, Start
from rc1_lib.training.rollout.token_sampling import draw
from rc1_lib.training.rollout.trajectory import Trajectory

STAGE = "rollout"

READING_SHARE = 1 / 2
"""What the world answered is read once this share of the rows that write has an answer: together it costs less."""

FREE_SHARE = 1 / 4
"""New rows are read once this share of the batch is free: a prompt alone is dear to read."""


def roll_out(
    model: PreTrainedModel,
    chat: ChatTokens,
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
    with merged(model), decoding(model, chat.pad_id, rows, batching.decoder) as decoder:
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
