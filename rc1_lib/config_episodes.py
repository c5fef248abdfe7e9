"""The sections of `training` on episodes: how far they go, what they are worth, how they are sampled."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rc1_lib.config_values import NotNegative, Positive, Section, Share, WrittenPath


class EpisodeLimits(Section):
    """How far an episode may go; see `rc1_lib.environment.limits.Limits`."""

    turns: Positive
    """Messages of the model, the final answer included."""
    tokens: Positive
    """Tokens of the model's messages and of all observations together, without the prompt."""
    tool_errors: Annotated[int, Field(ge=0)]
    """Failed tool calls that are forgiven; one more ends the episode."""
    malformed: Annotated[int, Field(ge=0)]
    """Malformed turns that are forgiven; one more ends the episode."""
    calls: Positive
    """Tool calls in one turn."""
    turn_chars: Positive
    """Characters of one turn; what is longer is not read."""
    argument_chars: Positive
    """Characters of one argument of a call."""


class EpisodeReward(Section):
    """What an episode is worth beside the penalty (`overclar`) and the difficulty factor (`difficulty_beta`)."""

    success: NotNegative
    """What a solved episode is worth."""
    judge: NotNegative
    """Weight of the calibrated score of an episode's dialogue, in [0, 1]; at 0 nobody is asked."""
    scores: WrittenPath
    """The folder of the replies that episodes are scored by, and of every step's scores."""
    min_scored: Share
    """The share of a step's episodes that have to be scored."""
    malformed: NotNegative
    """Price of a malformed turn."""
    turn: NotNegative
    """Price of a turn."""


class Rollout(Section):
    """How episodes are sampled."""

    temperature: Annotated[float, Field(gt=0)]
    """Of the sampled tokens, in training and in the evaluation's sampled mode."""
    rows: Positive
    """Episodes under way at once."""
    prefill_tokens: Positive
    """Tokens of prompts that are read at once, padding included: a matter of memory."""
    sampling_copy: Literal["bf16", "none"]
    """What tokens are sampled with where the base is in 4 or 16 bits: `bf16`, a copy of base and adapter as one matrix
    a layer, two bytes a weight, written anew before every rollout, or the layers as they are. A base in 32 bits is
    merged with its adapter either way."""
    decoder: Literal["growing", "slots", "graphs"]
    """Where keys and values stand while rows write: `growing`, as many slots as the longest row has; `slots`, a slot
    for every position of every row, at addresses that stay; `graphs`, slots and a CUDA graph of a step for each of a
    few sizes. The last bits of log-probabilities differ."""


class Parity(Section):
    """How near sampling and learning have to come to each other; beyond either bound training ends.

    Both are measured at every step, before its first update: there the policy that learns is the one that sampled, so
    that whatever differs is a fault of the arithmetic or of the weights.
    """

    mean: Annotated[float, Field(gt=0)]
    """Most that a token's log-probability may differ on average, in nats."""
    far_share: Share
    """Most tokens, as a share, whose probabilities may differ by more than a tenth (0.1 nats)."""
