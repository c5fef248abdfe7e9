"""The sections of `training` on episodes: limits, reward and sampling."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rc1_lib.config.addresses import VLLM_KEY, read_address
from rc1_lib.config.values import NotNegative, Positive, Section, Share
from rc1_lib.errors import ConfigError


def _usable_server(address: str) -> str:
    """Reject an address with a key before anything is written; otherwise every report would show the key."""
    try:
        read_address(address, "The address of training.vllm.base_url", VLLM_KEY)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return address


def _absolute(folder: str) -> str:
    if not PurePosixPath(folder).is_absolute() or "\0" in folder:
        raise ValueError(f"found {folder!r}, expected an absolute path, because the server uses it too")
    return folder


class EpisodeLimits(Section):
    """Limits of an episode; see `rc1_lib.environment.turn.Limits`."""

    turns: Positive
    """Messages of the model, including the final answer."""
    tokens: Positive
    """Tokens of the model's messages and of all observations together, without the prompt."""
    turn_chars: Positive
    """Characters of one turn; longer turns are not parsed."""
    argument_chars: Positive
    """Characters of one argument of a call."""


class EpisodeReward(Section):
    """The reward of an episode, apart from the penalty (`overclar`) and the difficulty factor (`difficulty_beta`)."""

    success: NotNegative
    """Reward of a solved episode; profile `prod` rejects 0."""
    judge: NotNegative
    """Weight of the calibrated score, in [0, 1], of an episode's dialogue; at 0 no judge is called, and the gates on
    that score do not apply."""
    turn: NotNegative
    """Penalty per turn of a solved episode. A failed episode has none, so that failing quickly, or doing nothing, has
    no advantage. If `success` is 0, it applies to every episode."""


class Rollout(Section):
    """How episodes are sampled."""

    temperature: Annotated[float, Field(gt=0)]
    """Temperature in training and in the evaluation's sampled mode."""
    thought_tokens: Positive | None
    """Maximum tokens of a turn's thoughts, for bases that think before they answer; `rollout_len` then counts only the
    tokens after them. null: thoughts count towards `rollout_len`."""
    rows: Positive
    """Concurrent episodes."""
    sampler: Literal["own", "vllm"]
    """Which engine samples: `own`, the policy in this process, reproducible byte for byte; `vllm`, the server of
    `training.vllm`, with the same probabilities up to rounding but not the same tokens."""


class VLLM(Section):
    """The vLLM server that samples if `training.rollout.sampler` is `vllm`; its key comes from the environment."""

    base_url: Annotated[str, AfterValidator(_usable_server)] | None
    """Its address, such as http://127.0.0.1:8000/v1; it must serve the initial policy."""
    adapters: Annotated[str, AfterValidator(_absolute)] | None
    """The folder for adapters that the server loads, visible to it under the same absolute path; null: a temporary
    folder on this machine."""


class Parity(Section):
    """Limits on the mismatch of log-probabilities between sampling and training; beyond either, training ends.

    Both are measured in every step before its first update. The two policies are the same then, so any difference is an
    error of arithmetic or of weights.
    """

    mean: Annotated[float, Field(gt=0)]
    """Maximum mean difference of a token's log-probability, in nats."""
    far_share: Share
    """Maximum share of tokens whose log-probability may differ by more than 0.1 nats."""
