"""The sections of `training` on episodes: how far they go, what they are worth, how they are sampled."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rc1_lib.config.addresses import VLLM_KEY, read_address
from rc1_lib.config.values import NotNegative, Positive, Reason, Section, Share, WrittenPath
from rc1_lib.errors import ConfigError


def _usable_server(address: str) -> str:
    """Refused before anything is written or recorded: an address that carries a key would stand in every report."""
    try:
        read_address(address, "The address of training.vllm.base_url", VLLM_KEY)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return address


def _absolute(folder: str) -> str:
    if not PurePosixPath(folder).is_absolute() or "\0" in folder:
        raise ValueError(f"found {folder!r}, expected an absolute path: the server opens the folder under the same one")
    return folder


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
    """Weight of the calibrated score of an episode's dialogue, in [0, 1]; at 0 nobody is asked, and the gates on that
    score do not apply."""
    unverified: Reason | None
    """Why a solved episode is worth nothing; wanted where `success` is 0."""
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
    sampler: Literal["own", "vllm"]
    """Who samples: `own`, the policy in this process, which gives the same bytes every time; `vllm`, the server of
    `training.vllm`, which gives the same probabilities up to rounding, and not the same tokens."""
    sampling_copy: Literal["bf16", "none"]
    """What tokens are sampled with where the base is in 4 or 16 bits: `bf16`, a copy of base and adapter as one matrix
    a layer, two bytes a weight, written anew before every rollout, or the layers as they are. A base in 32 bits is
    merged with its adapter either way."""
    decoder: Literal["growing", "slots", "graphs"]
    """Where keys and values stand while rows write: `growing`, as many slots as the longest row has; `slots`, a slot
    for every position of every row, at addresses that stay; `graphs`, slots and a CUDA graph of a step for each of a
    few sizes. The last bits of log-probabilities differ."""


class VLLM(Section):
    """The vLLM server that samples where `training.rollout.sampler` is `vllm`; its key comes from the environment."""

    base_url: Annotated[str, AfterValidator(_usable_server)] | None
    """Its address, such as http://127.0.0.1:8000/v1; it serves the policy that training starts from."""
    adapters: Annotated[str, AfterValidator(_absolute)] | None
    """The folder that adapters are written to for the server to load, which sees it under the same absolute path; null:
    a temporary one of this machine."""
    timeout_s: Annotated[float, Field(gt=0)]
    """Seconds after which an answer is given up."""
    attempts: Annotated[int, Field(ge=1, le=10)]
    """Times in all that a request is sent which the server leaves unanswered, or answers with a failure of its own."""


class Parity(Section):
    """How near sampling and learning have to come to each other; beyond either bound training ends.

    Both are measured at every step, before its first update: there the policy that learns is the one that sampled, so
    that whatever differs is a fault of the arithmetic or of the weights.
    """

    mean: Annotated[float, Field(gt=0)]
    """Most that a token's log-probability may differ on average, in nats."""
    far_share: Share
    """Most tokens, as a share, whose probabilities may differ by more than a tenth (0.1 nats)."""
