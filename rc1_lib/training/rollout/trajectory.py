"""One finished episode as tokens: what the policy sampled, what it was given, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rc1_lib.environment.outcome import EpisodeOutcome
from rc1_lib.records import Message


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An episode as one token list, never re-tokenised.

    `ids`, `own` and `logprobs` have the same length T.

    Attributes:
        row_id: the row that the episode was played on.
        ids: the prompt and everything after it.
        prompt_tokens: how many of `ids` are the prompt; the first own token stands at this index.
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
