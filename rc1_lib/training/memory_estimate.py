"""How much memory an engine's policy will take, worked out from its shape before anything of it is allocated.

A model is built without weights to count them; the rest follows from the configuration. What is estimated is the peak
of a step whose dialogues are as long as the longest demonstration, not a bound on every dialogue that could be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig

from rc1_lib.config import RunConfig
from rc1_lib.config_training import AdapterSettings
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import model_without_weights
from rc1_lib.training.memory import free_bytes, held_bytes
from rc1_lib.training.updates.own_tokens import HEAD_TOKENS

_NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a weight: 4 bits, and for every 64 of them a scale of 8 bits, which share a scale of 32 by 256."""
_LOGITS = 5
"""Copies of a chunk of logits at once: themselves, log-probabilities, entropy's products, and both gradients."""
_AHEAD = 2
"""Slots of keys and values that are allocated for one in use, see `rollout.growing_layer`."""
_GIB, _MIB = 2**30, 2**20


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes by part. A step plays first and learns then, so that its peak is the larger of the two.

    Attributes:
        held: by the process before anything was allocated (a GPU: by its allocator).
        standing: what stays throughout: weights, their copy to sample with, adapter, gradients, optimizer.
        playing: while episodes are sampled.
        learning: while gradients are worked out.
    """

    held: int
    standing: Mapping[str, int]
    playing: Mapping[str, int]
    learning: Mapping[str, int]

    @property
    def needed(self) -> int:
        """What will be allocated at most."""
        return sum(self.standing.values()) + max(sum(self.playing.values()), sum(self.learning.values()))

    @property
    def peak_mb(self) -> float:
        """As `mem_used_mb` is measured, in MiB."""
        return (self.held + self.needed) / _MIB

    def mebibytes(self) -> dict[str, float]:
        """Part -> MiB, for reports."""
        parts = {"held before": self.held, **self.standing, **self.playing, **self.learning}
        return {name: round(size / _MIB, 1) for name, size in parts.items()} | {"peak": round(self.peak_mb, 1)}

    def __str__(self) -> str:
        """Every part in GiB."""

        def shown(parts: Mapping[str, int]) -> str:
            return ", ".join(f"{name} {size / _GIB:.2f}" for name, size in parts.items())

        return f"{shown(self.standing)}; while it plays: {shown(self.playing)}; while it learns: {shown(self.learning)}"


@dataclass(frozen=True, slots=True)
class _Counted:
    """Numbers in a model: in its layers' matrices, all others, in adapted matrices, the largest, and the adapter's."""

    matrices: int
    others: int
    adapted: int
    largest: int
    adapter: int


def estimate_memory(
    config: RunConfig, shape: PretrainedConfig, device: torch.device, longest: int | None
) -> MemoryEstimate:
    """The memory that one process's engine will take.

    Args:
        config: of the run.
        shape: the base's own configuration.
        device: where it will be.
        longest: tokens of the longest demonstration; None: as many as `training.max_tokens` lets in.
    """
    training, text = config.training, shape.get_text_config()
    counted = _counted(shape, training.adapter)
    quantised = config.finetune.method == "qlora"
    number = 4 if device.type == "cpu" else 2
    tokens = min(longest or training.max_tokens, text.max_position_embeddings)
    rows = min(training.rollout.rows, math.ceil(config.batch_size / training.shards))
    matrix = _NF4 if quantised else number
    merges = number == 4 and not quantised
    apart = counted.matrices if quantised else 0 if merges else counted.adapted
    elsewhere = training.rollout.sampler == "vllm"
    copied = 0 if elsewhere or training.rollout.sampling_copy == "none" else apart
    state, layer = text.hidden_size, _per_token(text, training.adapter)
    read = min(max(training.rollout.prefill_tokens, tokens), rows * tokens)
    unpacked = counted.largest * number if quantised else 0
    episodes = math.ceil(config.batch_size / (training.update.minibatches * training.shards))
    learned = min(max(training.update.micro_tokens, tokens), episodes * tokens)
    sampled = episodes * min(training.limits.turns * config.rollout_len, training.limits.tokens)
    kept = state * text.num_hidden_layers + layer if training.gradient_checkpointing else layer * text.num_hidden_layers
    cached = 2 * text.num_hidden_layers * text.num_key_value_heads * _head_size(text) * number
    repeated = 2 * text.num_attention_heads * _head_size(text) * number  # one layer's, a copy for every head
    return MemoryEstimate(
        held=held_bytes(device),
        standing={
            "weights": int(counted.matrices * matrix) + counted.others * number,
            "sampling copy": 2 * copied,
            "adapter": 4 * counted.adapter,
            "gradients": 4 * counted.adapter * (1 + training.shards),
            "optimizer": 8 * counted.adapter,
        },
        playing={}
        if elsewhere
        else {
            "merged weights": counted.matrices * number if merges else 0,
            "keys and values": rows * tokens * (_AHEAD * cached + repeated),
            "prompts and draws": unpacked + read * _widest(text) * number + 3 * rows * text.vocab_size * 4,
        },
        learning={
            "activations": unpacked + learned * (kept + _widest(text)) * number,
            "logits": _LOGITS * min(HEAD_TOKENS, sampled) * text.vocab_size * 4,
        },
    )


def check_memory(estimate: MemoryEstimate, device: torch.device, processes: int) -> None:
    """Refuse what cannot fit, before anything is allocated.

    Args:
        estimate: of one process.
        device: where it will be.
        processes: that share the device's memory.

    Raises:
        ConfigError: naming what every part takes, and what there is.
    """
    free = free_bytes(device)
    if free is None or estimate.needed * processes <= free:
        return
    several = f" in each of {processes} processes" if processes > 1 else ""
    raise ConfigError(
        f"the policy does not fit into the memory of this machine ({device.type}): about {estimate.needed / _GIB:.2f} "
        f"GiB are needed{several}, {free / _GIB:.2f} GiB are free. In GiB: {estimate}. Lower training.rollout.rows, "
        f"training.rollout.prefill_tokens or micro_tokens, set training.gradient_checkpointing or finetune.method: "
        f"qlora, or take a smaller base_model"
    )


def check_warm_start(shape: PretrainedConfig, device: torch.device) -> None:
    """Refuse a warm start that cannot fit: every weight is trained in fp32, and has a gradient and two moments.

    What its layers keep of a batch comes on top, and is not counted.

    Args:
        shape: the base's own configuration.
        device: where it will be.

    Raises:
        ConfigError: naming what the weights alone take, and what there is.
    """
    free, needed = free_bytes(device), warm_start_bytes(shape)
    if free is None or needed <= free:
        return
    raise ConfigError(
        f"training.warm_start.steps: the warm start trains all weights of the base, which takes {needed / _GIB:.2f} "
        f"GiB at least ({device.type}; 16 bytes a weight), {free / _GIB:.2f} GiB are free; write 0, and training "
        f"starts from the base itself, or take a smaller base_model"
    )


def warm_start_bytes(shape: PretrainedConfig) -> int:
    """What the warm start takes at least."""
    return 16 * sum(value.numel() for value in model_without_weights(shape).parameters())


def _counted(shape: PretrainedConfig, adapter: AdapterSettings) -> _Counted:
    model: Any = model_without_weights(shape)
    head = model.get_output_embeddings()
    layers = {
        name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear) and layer is not head
    }
    sizes = [layer.weight.numel() for layer in layers.values()]
    adapted = [layer for name, layer in layers.items() if name.rpartition(".")[2] in adapter.targets]
    return _Counted(
        matrices=sum(sizes),
        others=sum(value.numel() for value in model.parameters()) - sum(sizes),
        adapted=sum(layer.weight.numel() for layer in adapted),
        largest=max(sizes),
        adapter=adapter.rank * sum(layer.in_features + layer.out_features for layer in adapted),
    )


def _per_token(text: Any, adapter: AdapterSettings) -> int:
    """Numbers that a layer keeps of a token for the gradients.

    Two states and what their norms make of them; queries, keys and values before and behind their norms and turns, and
    what attention makes of them, twice; the feed-forward part's gate before and behind its function, its other half
    and their product; and what every adapter passes between its two matrices.
    """
    queries, keys = (int(heads) * _head_size(text) for heads in (text.num_attention_heads, text.num_key_value_heads))
    passed = adapter.rank * len(adapter.targets)
    return 4 * int(text.hidden_size) + 4 * queries + 4 * keys + 4 * int(text.intermediate_size) + passed


def _widest(text: Any) -> int:
    """Numbers of a token under way through one layer, none of which are kept."""
    return 2 * int(text.hidden_size) + 3 * int(text.intermediate_size)


def _head_size(text: Any) -> int:
    return int(getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads)
