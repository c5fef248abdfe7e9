"""How much memory an engine's policy will take, worked out from its shape before anything of it is allocated.

A model is built without weights to count them; the rest follows from the configuration. What is estimated is the peak
of a step whose dialogues are as long as the longest demonstration, not a bound on every dialogue that could be.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig

from rc1_lib.config.engines import ENGINES, own_name
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.training.base_model import base_config, model_without_weights
from rc1_lib.training.memory import free_bytes, held_bytes
from rc1_lib.training.setups import SupervisedSetup
from rc1_lib.training.updates.own_tokens import HEAD_TOKENS

_NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes of a weight: 4 bits, and for every 64 of them a scale of 8 bits, which share a scale of 32 by 256."""
_LOGITS = 5
"""Copies of a chunk of logits at once: themselves, log-probabilities, entropy's products, and both gradients."""
_LOGITS_READ = 2
"""Copies where nothing is learned: themselves and log-probabilities; at a temperature of 1 they are not divided."""
_LOGITS_OF_ROWS = 4
"""Copies of plain cross entropy: themselves, log-probabilities, and both gradients."""
TILE_TOKENS, TILE_WORDS = 4096, 32_768
"""Of TRL's losses, which never hold more logits than these at once."""
_TILE_COPIES = 10
"""Copies of a tile where Triton does not work through it: as it comes, and what its gradient is made of."""
_FEWER_EPISODES = (
    "Lower training.rollout.rows, training.rollout.prefill_tokens or micro_tokens, set training.gradient_checkpointing "
    "or finetune.method: qlora, or take a smaller base_model"
)
_FEWER_ROWS = (
    "Lower data.batch_size or data.max_length, set model.gradient_checkpointing or model.quantization: nf4, or take a "
    "smaller model.base"
)
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
    counted = _counted(shape, training.adapter.rank, training.adapter.targets)
    quantised = config.finetune.method == "qlora"
    number = 4 if device.type == "cpu" else 2
    shards = training.shards
    tokens = min(longest or training.max_tokens, text.max_position_embeddings)
    played = math.ceil(config.batch_size / shards)
    rows = min(training.rollout.rows, played)
    matrix = _NF4 if quantised else number
    merges = number == 4 and not quantised
    apart = counted.matrices if quantised else 0 if merges else counted.adapted
    elsewhere = training.rollout.sampler == "vllm"
    copied = 0 if elsewhere or training.rollout.sampling_copy == "none" else apart
    layer = _per_token(text, training.adapter.rank, training.adapter.targets)
    read = min(max(training.rollout.prefill_tokens, tokens), rows * tokens)
    unpacked = counted.largest * number if quantised else 0
    learner = ENGINES[own_name(training.engine)]
    # DPO learns from the best and the worst take of a prompt, whatever all of them are read for.
    taken = 2 * config.prompts if learner.beta else config.batch_size
    episodes = math.ceil(taken / (training.update.minibatches * shards))
    at_once = max(training.update.micro_tokens, tokens)
    learned = min(at_once, episodes * tokens)
    all_read = min(at_once, played * tokens)
    said = min(training.limits.turns * config.rollout_len, training.limits.tokens)  # at most, in an episode
    chunk, read_chunk = (min(HEAD_TOKENS, count * said) for count in (episodes, played))
    copies_read = _LOGITS_READ + (training.rollout.temperature != 1)
    of_learning = _tile(learned, text.vocab_size, device) if learner.head_by else _LOGITS * chunk * text.vocab_size * 4
    kept = _kept(text, layer, training.gradient_checkpointing)
    cached = 2 * text.num_hidden_layers * text.num_key_value_heads * _head_size(text) * number
    repeated = 2 * text.num_attention_heads * _head_size(text) * number  # one layer's, a copy for every head
    return MemoryEstimate(
        held=held_bytes(device),
        standing={
            "weights": int(counted.matrices * matrix) + counted.others * number,
            "sampling copy": 2 * copied,
            "adapter": 4 * counted.adapter,
            "gradients": 4 * counted.adapter * (1 + shards),
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
            "activations": unpacked + max(learned * (kept + _widest(text)), all_read * _widest(text)) * number,
            "logits": max(of_learning, copies_read * read_chunk * text.vocab_size * 4),
        },
    )


def estimate_rows_memory(setup: SupervisedSetup, shape: PretrainedConfig, device: torch.device) -> MemoryEstimate:
    """The memory that an engine will take which learns from rows.

    Args:
        setup: of the engine.
        shape: the base's own configuration.
        device: where it will be.
    """
    model, text = setup.model, shape.get_text_config()
    counted = _counted(shape, model.lora.r, model.lora.target_modules)
    quantised, adapted = model.quantization is not None, model.lora.enable
    number = 2 if adapted and device.type != "cpu" else 4
    trained = counted.adapter if adapted else counted.matrices + counted.others
    most = text.max_position_embeddings
    read, learned = (setup.micro_batch * min(length or most, most) for length in (setup.longest, setup.most_learned))
    layer = _per_token(text, model.lora.r, model.lora.target_modules if adapted else ())
    kept = _kept(text, layer, model.gradient_checkpointing)
    return MemoryEstimate(
        held=held_bytes(device),
        standing={
            # The norms and embeddings of a base in 4 bits are made fp32.
            "weights": int(counted.matrices * (_NF4 if quantised else number))
            + counted.others * (4 if quantised else number),
            "adapter": 4 * counted.adapter if adapted else 0,
            "gradients": 4 * trained,
            "optimizer": 8 * trained,
        },
        playing={},
        learning={
            "activations": (counted.largest * number if quantised else 0) + read * (kept + _widest(text)) * number,
            "logits": _tile(read, text.vocab_size, device)
            if ENGINES[own_name(setup.engine.name)].head_by
            else _LOGITS_OF_ROWS * learned * text.vocab_size * 4,
        },
    )


def estimated_mb(setup: SupervisedSetup, device: torch.device) -> float | None:
    """The peak of an engine that learns from rows, as `mem_used_mb` is measured; None where nobody knows the rows.

    Raises:
        ConfigError: when it cannot fit, before anything is allocated; or the base cannot be had.
    """
    if setup.longest is None:
        return None
    estimate = estimate_rows_memory(setup, base_config(setup.model), device)
    check_memory(estimate, device, 1, _FEWER_ROWS)
    return estimate.peak_mb


def _tile(read: int, vocabulary: int, device: torch.device) -> int:
    """What TRL's losses hold of logits; where Triton does not work through them, of all tokens that are read."""
    words = min(TILE_TOKENS, read) * min(TILE_WORDS, vocabulary)
    return words * (2 if device.type == "cuda" else 4 * _TILE_COPIES)


def check_memory(estimate: MemoryEstimate, device: torch.device, processes: int, advice: str = _FEWER_EPISODES) -> None:
    """Refuse what cannot fit, before anything is allocated.

    Args:
        estimate: of one process.
        device: where it will be.
        processes: that share the device's memory.
        advice: what makes it need less.

    Raises:
        ConfigError: naming what every part takes, and what there is.
    """
    free = free_bytes(device)
    if free is None or estimate.needed * processes <= free:
        return
    several = f" in each of {processes} processes" if processes > 1 else ""
    raise ConfigError(
        f"the policy does not fit into the memory of this machine ({device.type}): about {estimate.needed / _GIB:.2f} "
        f"GiB are needed{several}, {free / _GIB:.2f} GiB are free. In GiB: {estimate}. {advice}"
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


def _kept(text: Any, layer: int, again: bool) -> int:
    """Numbers kept of a token for the gradients, `layer` of them in each layer, or computed again in one at a time."""
    layers = int(text.num_hidden_layers)
    return int(text.hidden_size) * layers + layer if again else layer * layers


def _counted(shape: PretrainedConfig, rank: int, targets: Collection[str]) -> _Counted:
    model: Any = model_without_weights(shape)
    head = model.get_output_embeddings()
    linear = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    sizes = [layer.weight.numel() for layer in linear.values() if layer is not head]
    adapted = [layer for name, layer in linear.items() if name.rpartition(".")[2] in targets]
    return _Counted(
        matrices=sum(sizes),
        others=sum(value.numel() for value in model.parameters()) - sum(sizes),
        adapted=sum(layer.weight.numel() for layer in adapted),
        largest=max(sizes),
        adapter=rank * sum(layer.in_features + layer.out_features for layer in adapted),
    )


def _per_token(text: Any, rank: int, targets: Collection[str]) -> int:
    """Numbers that a layer keeps of a token for the gradients.

    Two states and what their norms make of them; queries, keys and values before and behind their norms and turns, and
    what attention makes of them, twice; the feed-forward part's gate before and behind its function, its other half
    and their product; and what every adapter passes between its two matrices.
    """
    queries, keys = (int(heads) * _head_size(text) for heads in (text.num_attention_heads, text.num_key_value_heads))
    passed = rank * len(targets)
    return 4 * int(text.hidden_size) + 4 * queries + 4 * keys + 4 * int(text.intermediate_size) + passed


def _widest(text: Any) -> int:
    """Numbers of a token under way through one layer, none of which are kept."""
    return 2 * int(text.hidden_size) + 3 * int(text.intermediate_size)


def _head_size(text: Any) -> int:
    return int(getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads)
