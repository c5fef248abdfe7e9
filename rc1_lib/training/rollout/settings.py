"""What a rollout is given: a chat format, episodes with names, and how to sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from rc1_lib.environment.episode import Episode
from rc1_lib.errors import RC1Error
from rc1_lib.records import Message


class RolloutError(RC1Error):
    """A model, a prompt or a setting with which no episode can be played."""


class ChatTokens(Protocol):
    """The part of a chat format that a rollout needs."""

    @property
    def end_id(self) -> int:
        """The token that ends a turn."""
        ...

    @property
    def pad_id(self) -> int:
        """The token that fills up; what it is does not matter to the result."""
        ...

    @property
    def thoughts(self) -> tuple[int, int] | None:
        """The tokens that open and close a block of thoughts; None where the tokenizer has none."""
        ...

    @property
    def opens_thoughts(self) -> bool:
        """Whether a turn begins inside a block of thoughts, which the template has opened."""
        ...

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """The tokens of a dialogue's opening up to where the assistant's first own token belongs."""
        ...

    def observation_ids(self, messages: Sequence[Message]) -> list[int]:
        """All tokens between a turn's last own token and the next turn's first."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special tokens included."""
        ...


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


class Decoding(StrEnum):
    """Where keys and values stand while rows write."""

    GROWING = "growing"
    """As many slots as the longest row has, which all rows end with: the least to read."""
    SLOTS = "slots"
    """A slot for every position of every row, allocated once: nothing moves between two tokens."""
    GRAPHS = "graphs"
    """Slots, and a CUDA graph of a step for each of a few sizes."""


@dataclass(frozen=True, slots=True)
class Batching:
    """How many rows and tokens go through the model at once; the result does not depend on it.

    Attributes:
        rows: episodes under way at once.
        prefill_tokens: tokens of prompts that are read at once, padding included.
        decoder: where keys and values stand.
    """

    rows: int
    prefill_tokens: int
    decoder: Decoding = Decoding.GROWING

    def __post_init__(self) -> None:
        """Refuse what nothing fits into."""
        if self.rows < 1 or self.prefill_tokens < 1:
            raise ValueError(f"rows is {self.rows} and prefill_tokens is {self.prefill_tokens}, expected at least 1")
