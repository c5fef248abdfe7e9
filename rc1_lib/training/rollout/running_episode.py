"""One episode under way: its tokens, what is still to be fed, and what follows when a turn ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rc1_lib.environment.markers import TURN_ENDS
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.training.rollout.settings import ChatTokens, RolloutError, RolloutSampling, Start
from rc1_lib.training.rollout.token_sampling import uniforms
from rc1_lib.training.rollout.trajectory import Trajectory


class RunningEpisode:
    """A row of the batch. Tokens are fed one by one; after the last known one the model's next token is wanted.

    Attributes:
        prompt: the prompt's tokens.
        over: whether nothing more is to be fed or sampled.
    """

    def __init__(self, start: Start, chat: ChatTokens, sampling: RolloutSampling, context: int) -> None:
        """Sets up a row whose prompt is not fed yet.

        Raises:
            RolloutError: when the prompt leaves no room for a single token.
        """
        self.prompt = tuple(chat.prompt_ids(start.episode.messages))
        if not 0 < len(self.prompt) < context:
            raise RolloutError(
                f"the prompt of row '{start.row_id}' has {len(self.prompt)} tokens, expected 1 to {context - 1} (the "
                f"model's context is {context}); leave the row out or take a model with a longer context"
            )
        self._start, self._chat, self._sampling, self._context = start, chat, sampling, context
        self.over = False
        self._ids = list(self.prompt)
        self._fed = len(self._ids)
        self._own = [False] * self._fed
        self._logprobs = [math.nan] * self._fed
        self._turn_ends: list[int] = []
        self._states: list[Tensor] = []
        self._outcome: EpisodeOutcome | None = None
        self._begin_turn()
        # Never more tokens are sampled than the episode grants, so all random numbers can be made at once.
        granted = min(start.episode.limits.tokens, context - self._fed)
        self._uniforms: NDArray[np.float64] = uniforms(sampling.seed, sampling.iteration, start.key, granted)
        self._drawn = 0

    @property
    def position(self) -> int:
        """Position of the token that `feed` returns next."""
        return self._fed

    @property
    def uniform(self) -> float:
        """The number that the next token is drawn by."""
        return float(self._uniforms[self._drawn])

    @property
    def room(self) -> int:
        """How many more tokens the turn may have."""
        return self._turn_bound - len(self._ids)

    @property
    def known(self) -> int:
        """How many tokens wait to be fed."""
        return len(self._ids) - self._fed

    def feed(self, count: int) -> list[int]:
        """The next `count` known tokens."""
        self._fed += count
        return self._ids[self._fed - count : self._fed]

    def take(self, token: int, logprob: float, state_D: Tensor | None = None) -> None:
        """Add the token that was sampled, and let the world answer where it ends the turn.

        Args:
            token: what was sampled.
            logprob: of it.
            state_D: the hidden state that it was sampled from, where states are to be kept.
        """
        assert not self.over, "the episode is over"
        if state_D is not None:
            self._states.append(state_D)
        self._ids.append(token)
        self._own.append(True)
        self._logprobs.append(logprob)
        self._drawn += 1
        self._watch_thoughts(token)
        ended = token == self._chat.end_id
        if ended or len(self._ids) == self._turn_bound:
            self._end_turn(cut=not ended)

    def trajectory(self) -> Trajectory:
        """The finished episode."""
        assert self._outcome is not None, "the episode is not over"
        return Trajectory(
            row_id=self._start.row_id,
            ids=tuple(self._ids),
            prompt_tokens=len(self.prompt),
            own=tuple(self._own),
            logprobs=tuple(self._logprobs),
            turn_ends=tuple(self._turn_ends),
            outcome=self._outcome,
            messages=tuple(self._start.episode.messages),
            states=torch.stack(self._states).float().cpu().numpy() if self._states else None,
        )

    def _begin_turn(self) -> None:
        episode = self._start.episode
        self._turn_start = len(self._ids)
        left = episode.limits.tokens - episode.outcome().tokens
        self._room_end = min(self._turn_start + left, self._context)
        self._in_thoughts = False
        self._grant(self._sampling.turn_tokens)
        if self._chat.opens_thoughts:
            self._begin_thoughts()

    def _grant(self, tokens: int) -> None:
        """Grant the turn so many tokens from here, as far as the dialogue and the model have room."""
        self._turn_bound = min(len(self._ids) + tokens, self._room_end)

    def _begin_thoughts(self) -> None:
        if self._sampling.thought_tokens is not None and self._chat.thoughts is not None:
            self._in_thoughts = True
            self._turn_bound = min(self._turn_start + self._sampling.thought_tokens, self._room_end)

    def _watch_thoughts(self, token: int) -> None:
        """Where thoughts have a budget of their own: it begins with them, and the turn's begins where they close."""
        opening, closing = self._chat.thoughts or (None, None)
        if token == opening and len(self._ids) == self._turn_start + 1:
            self._begin_thoughts()
        elif token == closing and self._in_thoughts:
            self._in_thoughts = False
            self._grant(self._sampling.turn_tokens)

    def _end_turn(self, *, cut: bool) -> None:
        self._turn_ends.append(len(self._ids) - 1)
        episode = self._start.episode
        turn = self._ids[self._turn_start :]
        # Every base has an end mark of its own; the environment reads Qwen's.
        said = self._chat.decode(turn) if cut else self._chat.decode(turn[:-1]) + TURN_ENDS[0]
        answers = episode.say(said, tokens=len(turn), cut=cut)
        if episode.status is not EpisodeStatus.RUNNING:
            self._finish(episode.outcome())
            return
        observed = self._chat.observation_ids(answers)
        if len(self._ids) + len(observed) >= self._context:
            # The world would go on, but the model has no room left: the tokens ran out.
            self._finish(replace(episode.outcome(), status=EpisodeStatus.MAX_TOKENS))
            return
        self._ids += observed
        self._own += [False] * len(observed)
        self._logprobs += [math.nan] * len(observed)
        self._begin_turn()

    def _finish(self, outcome: EpisodeOutcome) -> None:
        self.over = True
        self._outcome = outcome
