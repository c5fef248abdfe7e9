"""One episode as tokens: its start, its state while running, and the finished trajectory."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rc1_lib.environment.episode import Episode
from rc1_lib.environment.markers import THINK, TURN_ENDS
from rc1_lib.environment.outcome import EpisodeOutcome, EpisodeStatus
from rc1_lib.records import Message
from rc1_lib.training.chat_format import ChatFormat
from rc1_lib.training.rollout.asking import Ban
from rc1_lib.training.rollout.decoder import RolloutError, uniforms


@dataclass(frozen=True, slots=True)
class Start:
    """An episode to play.

    Attributes:
        row_id: id of its row.
        key: seeds its random numbers; two episodes of one row have different keys.
        episode: not begun yet; its `count` should use the model's tokenizer.
        ban: what its policy may not write, if anything.
        opening: tokens with which its first turn begins, whatever the policy would write.
        shown: tokens before the prompt, of dialogues that are shown as examples.
    """

    row_id: str
    key: str
    episode: Episode
    ban: Ban | None = None
    opening: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutSampling:
    """How tokens are sampled.

    Attributes:
        temperature: 0 means greedy.
        turn_tokens: most tokens of a turn, including its end token. A longer turn is cut.
        thought_tokens: most tokens of a turn's thoughts, including the closing token. They do not count towards
            `turn_tokens`. A turn whose thoughts are longer is cut. None: thoughts count like everything else.
    """

    temperature: float
    turn_tokens: int
    seed: int
    iteration: int
    thought_tokens: int | None = None

    def __post_init__(self) -> None:
        """Reject invalid settings."""
        if self.temperature < 0.0:
            raise ValueError(f"temperature is {self.temperature}, expected 0 (greedy) or more")
        if self.turn_tokens < 1:
            raise ValueError(f"turn_tokens is {self.turn_tokens}, expected at least 1")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An episode as one token list, never tokenized again.

    `ids`, `action_mask` and `logprobs` have the same length T.

    Attributes:
        row_id: id of the row on which the episode was played.
        ids: the prompt and everything after it.
        prompt_tokens: length of the prompt; the first action token is at this index.
        action_mask: True for tokens that the policy sampled, including the end of each turn.
        logprobs: natural log-probability of each action token under the distribution it was sampled from, including the
            temperature; NaN for other tokens.
        turn_ends: index of the last action token of every turn, in order.
        outcome: how the episode ended.
        messages: the dialogue, including the prompt, in the pool's format.
        states: fp32 (action tokens, D), the hidden state from which each action token was sampled, if kept.
    """

    row_id: str
    ids: tuple[int, ...]
    prompt_tokens: int
    action_mask: tuple[bool, ...]
    logprobs: tuple[float, ...]
    turn_ends: tuple[int, ...]
    outcome: EpisodeOutcome
    messages: tuple[Message, ...]
    states: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the parts are consistent."""
        assert len(self.ids) == len(self.action_mask) == len(self.logprobs), (
            "ids, action_mask and logprobs differ in length"
        )
        assert 0 < self.prompt_tokens <= len(self.ids), "a trajectory must begin with its prompt"
        assert not any(self.action_mask[: self.prompt_tokens]), "the prompt has action tokens"
        assert all(self.action_mask[end] for end in self.turn_ends), "a turn must end with an action token"
        assert self.states is None or len(self.states) == self.action_count, "expected one state per action token"

    @property
    def action_count(self) -> int:
        """Number of tokens that the policy sampled."""
        return sum(self.action_mask)

    def parts(self) -> dict[str, Any]:
        """Return the fields as tensors and JSON values, from which `of` makes an equal trajectory."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {
            "ids": torch.tensor(self.ids),
            "action_mask": torch.tensor(self.action_mask),
            "logprobs": torch.tensor(self.logprobs, dtype=torch.float64),
            "outcome": asdict(self.outcome),
            "states": None if self.states is None else torch.from_numpy(self.states),
        }

    @classmethod
    def of(cls, parts: dict[str, Any]) -> Self:
        """Make the trajectory whose `parts` these are."""
        outcome = parts["outcome"]
        return cls(
            **parts
            | {name: tuple(parts[name].tolist()) for name in ("ids", "action_mask", "logprobs")}
            | {name: tuple(parts[name]) for name in ("turn_ends", "messages")}
            | {
                "outcome": EpisodeOutcome(**outcome | {"status": EpisodeStatus(outcome["status"])}),
                "states": None if parts["states"] is None else parts["states"].numpy(),
            }
        )


def prompt_of(start: Start, chat: ChatFormat, context: int) -> tuple[int, ...]:
    """Return the tokens of a prompt, after those that are shown as examples.

    Raises:
        RolloutError: if the prompt leaves no room for a single token.
    """
    prompt = (*start.shown, *chat.prompt_ids(start.episode.messages))
    if not 0 < len(prompt) < context:
        raise RolloutError(
            f"the prompt of row '{start.row_id}' has {len(prompt)} tokens, expected 1 to {context - 1} (the model's "
            f"context is {context}); leave the row out or use a model with a longer context"
        )
    return prompt


class RunningEpisode:
    """A row of the rollout. Known tokens are fed first; after the last known token the model's next token is sampled.

    Attributes:
        prompt: tokens of the prompt.
        over: whether the episode is finished.
    """

    def __init__(self, start: Start, chat: ChatFormat, sampling: RolloutSampling, context: int) -> None:
        """Set up a row whose prompt is not fed yet.

        Raises:
            RolloutError: see `prompt_of`.
        """
        self.prompt = prompt_of(start, chat, context)
        self._start, self._chat, self._sampling, self._context = start, chat, sampling, context
        self.over = False
        self._ids = list(self.prompt)
        self._fed = len(self._ids)
        self._action_mask = [False] * self._fed
        self._logprobs = [math.nan] * self._fed
        self._turn_ends: list[int] = []
        self._states: list[Tensor] = []
        self._outcome: EpisodeOutcome | None = None
        self._begin_turn()
        # An episode never samples more tokens than its limit, so all random numbers are drawn at once.
        granted = min(start.episode.limits.tokens, context - self._fed)
        self._uniforms: NDArray[np.float64] = uniforms(sampling.seed, sampling.iteration, start.key, granted)
        self._drawn = 0

    @property
    def position(self) -> int:
        """Position of the token that `feed` returns next."""
        return self._fed

    @property
    def uniform(self) -> float:
        """Random number for the next token."""
        return float(self._uniforms[self._drawn])

    @property
    def banned(self) -> list[int]:
        """Tokens that may not be sampled next."""
        ban = self._start.ban
        return [] if ban is None else ban.tokens(self._ids[self._turn_start :])

    @property
    def forced(self) -> int | None:
        """The only token that may be sampled next, or None."""
        written = len(self._ids) - len(self.prompt)
        return self._start.opening[written] if written < len(self._start.opening) else None

    @property
    def room(self) -> int:
        """Number of tokens that the turn may still have."""
        return self._turn_bound - len(self._ids)

    @property
    def known(self) -> int:
        """Number of known tokens that are not fed yet."""
        return len(self._ids) - self._fed

    def feed(self, count: int) -> list[int]:
        """Return the next `count` known tokens and count them as fed."""
        self._fed += count
        return self._ids[self._fed - count : self._fed]

    def take(self, token: int, logprob: float, state_D: Tensor | None = None) -> None:
        """Add a sampled token. If it ends the turn, get the environment's reply.

        Args:
            token: the sampled token.
            logprob: its log-probability.
            state_D: the hidden state from which it was sampled, if states are kept.
        """
        assert not self.over, "the episode is over"
        if state_D is not None:
            self._states.append(state_D)
        self._ids.append(token)
        self._action_mask.append(True)
        self._logprobs.append(logprob)
        self._drawn += 1
        self._watch_thoughts(token)
        ended = token == self._chat.end_id
        if ended or len(self._ids) == self._turn_bound:
            self._end_turn(cut=not ended)

    def trajectory(self) -> Trajectory:
        """Return the finished episode."""
        assert self._outcome is not None, "the episode is not over"
        return Trajectory(
            row_id=self._start.row_id,
            ids=tuple(self._ids),
            prompt_tokens=len(self.prompt),
            action_mask=tuple(self._action_mask),
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
        """Allow the turn `tokens` more tokens, within the limits of dialogue and context."""
        self._turn_bound = min(len(self._ids) + tokens, self._room_end)

    def _begin_thoughts(self) -> None:
        if self._sampling.thought_tokens is not None and self._chat.thoughts is not None:
            self._in_thoughts = True
            self._turn_bound = min(self._turn_start + self._sampling.thought_tokens, self._room_end)

    def _watch_thoughts(self, token: int) -> None:
        """Give thoughts a budget of their own: from the opening token on. The turn's starts at the closing token."""
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
        # Every base has its own end token; the environment expects Qwen's.
        said = self._chat.decode(turn) if cut else self._chat.decode(turn[:-1]) + TURN_ENDS[0]
        # Without the prompt's mark, thoughts that never close would count as the answer.
        said = THINK * self._chat.opens_thoughts + said
        answers = episode.say(said, tokens=len(turn), cut=cut)
        if episode.status is not EpisodeStatus.RUNNING:
            self._finish(episode.outcome())
            return
        observed = self._chat.observation_ids(answers)
        if len(self._ids) + len(observed) >= self._context:
            # The episode could go on, but the model's context is full.
            self._finish(replace(episode.outcome(), status=EpisodeStatus.MAX_TOKENS))
            return
        self._ids += observed
        self._action_mask += [False] * len(observed)
        self._logprobs += [math.nan] * len(observed)
        self._begin_turn()

    def _finish(self, outcome: EpisodeOutcome) -> None:
        self.over = True
        self._outcome = outcome
