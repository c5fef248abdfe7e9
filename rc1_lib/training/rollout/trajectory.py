"""One episode as tokens: what it starts from, what it is while it runs, and what the policy sampled in the end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.markers import TURN_ENDS
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.records import Message
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.rollout.decoder import RolloutError
from rc1_lib.training.rollout.token_sampling import uniforms


@dataclass(frozen=True, slots=True)
class Start:
    """An episode to play.

    Attributes:
        row_id: the row it is played on.
        key: names the episode's random numbers: two episodes of one row have different keys.
        episode: fresh; its `count` should be that of the model's tokenizer.
    """

    row_id: str
    key: str
    episode: Episode


@dataclass(frozen=True, slots=True)
class RolloutSampling:
    """How tokens are sampled.

    Attributes:
        temperature: 0 is greedy.
        turn_tokens: tokens of one turn, its end included; a turn that has no end by then is cut.
        thought_tokens: tokens of a turn's thoughts, the one that closes them included, which do not count towards
            `turn_tokens`; a turn whose thoughts are not closed by then is cut. None: thoughts count as all else.
        seed, iteration: together with a start's key they decide every random number.
    """

    temperature: float
    turn_tokens: int
    seed: int
    iteration: int
    thought_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be sampled by."""
        if self.temperature < 0.0:
            raise ValueError(f"temperature is {self.temperature}, expected 0 (greedy) or more")
        if self.turn_tokens < 1:
            raise ValueError(f"turn_tokens is {self.turn_tokens}, expected at least 1")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An episode as one token list, never re-tokenised.

    `ids`, `own` and `logprobs` have the same length T.

    Attributes:
        row_id: the row that the episode was played on.
        ids: the prompt and everything after it.
        prompt_tokens: how many of `ids` are the prompt; the first own token is at this index.
        own: True where the policy sampled the token, its end-of-turn token included.
        logprobs: natural log-probability of each sampled token under the distribution it was sampled from, temperature
            included; NaN where the token is not the policy's own.
        turn_ends: index of the last own token of every turn, in order.
        outcome: how the episode ended and what it is worth.
        messages: the dialogue, the prompt included, in the pool's format.
        states: fp32 (own tokens, D), the hidden state that each own token was sampled from, where it was kept.
    """

    row_id: str
    ids: tuple[int, ...]
    prompt_tokens: int
    own: tuple[bool, ...]
    logprobs: tuple[float, ...]
    turn_ends: tuple[int, ...]
    outcome: EpisodeOutcome
    messages: tuple[Message, ...]
    states: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the parts belong together."""
        assert len(self.ids) == len(self.own) == len(self.logprobs), "ids, own and logprobs differ in length"
        assert 0 < self.prompt_tokens <= len(self.ids), "a trajectory begins with its prompt"
        assert not any(self.own[: self.prompt_tokens]), "the prompt is not the policy's own"
        assert all(self.own[end] for end in self.turn_ends), "a turn ends with a token of the policy"
        assert self.states is None or len(self.states) == self.own_tokens, "a state for each token of the policy"

    @property
    def own_tokens(self) -> int:
        """How many tokens the policy sampled."""
        return sum(self.own)


class RunningEpisode:
    """A row of the batch. Tokens are fed one by one; after the last known one the model's next token is wanted.

    Attributes:
        prompt: the prompt's tokens.
        over: whether nothing more is to be fed or sampled.
    """

    def __init__(self, start: Start, chat: ChatFormat, sampling: RolloutSampling, context: int) -> None:
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
