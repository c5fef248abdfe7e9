"""Check whether a base can be trained with a configuration, from its shape and the device, before loading it.

What an engine can never use, whatever the base, is rejected when the configuration is read: `EngineSpec.refusal`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import nn
from transformers import PretrainedConfig

from rc1_lib.config.engines import ENGINES, HEAD, adapts_head, own_name
from rc1_lib.config.run_config import RunConfig
from rc1_lib.errors import ConfigError
from rc1_lib.training.api import Setup
from rc1_lib.training.base_model import (
    check_adapter_targets,
    check_no_attention_dropout,
    model_without_weights,
)
from rc1_lib.training.device import Precision, precision_of
from rc1_lib.training.memory import free_bytes
from rc1_lib.training.rollout.decoder import context_of

_NF4 = 0.5 + 1 / 64 + 4 / (64 * 256)
"""Bytes per 4-bit weight: 64 weights share an 8-bit scale, and 256 scales share a 32-bit one."""
_LEARNED = 16
"""Bytes per trained parameter: the fp32 weight, its gradient and two moments."""
_GIB = 2**30

Parts = Mapping[str, int]
"""What needs memory -> bytes."""


def check_usable(config: RunConfig, shape: PretrainedConfig) -> None:
    """Reject what an engine for episodes would only fail on after the warm start.

    Args:
        shape: the base's own configuration.

    Raises:
        RC1Error: if no episode can be played with this base, it changes its logits after the last layer, gradient
            checkpointing would not give the same numbers, or the adapter's targets are not linear layers or share
            weights with the embedding.
    """
    training = config.training
    targets = training.adapter.targets
    context = context_of(shape)  # rejects layers other than attention
    if training.max_tokens > context:
        raise ConfigError(
            f"training.max_tokens: found {training.max_tokens}, but this base reads {context} tokens; lower it (in a "
            f"small configuration data.max_length)"
        )
    check_logits(shape)
    if training.gradient_checkpointing:
        check_no_attention_dropout(shape)
    elif ENGINES[own_name(training.engine)].trl:
        check_no_attention_dropout(shape, "training.engine", "use another engine")
    check_adapter_targets(targets, config.base_model, model_without_weights(shape))
    tied = getattr(shape.get_text_config(), "tie_word_embeddings", False)
    if tied and adapts_head(targets):
        raise ConfigError(
            f"training.adapter.targets: found {HEAD}, which shares its weights with the embedding in this base "
            f"(tie_word_embeddings in its config.json): merged for sampling or export, its adapter would change the "
            f"embedding too; leave it out"
        )


def check_logits(shape: PretrainedConfig) -> None:
    """Reject a base that changes its logits after its last layer, since updates read them there.

    Raises:
        ConfigError: names the key of its config.json.
    """
    text = shape.get_text_config()
    for key, plain in (("final_logit_softcapping", None), ("logits_scaling", 1.0), ("logit_scale", 1.0)):
        if (found := getattr(text, key, plain)) not in (plain, None):
            raise ConfigError(
                f"the base's config.json has {key} {found}, so it changes its logits after the last layer, and RC1's "
                f"updates do not; use another base"
            )


def least_memory(setup: Setup, shape: PretrainedConfig, device: torch.device) -> Parts:
    """Estimate the least memory of one process. Activations and caches come on top and are not estimated."""
    lora, quantised = setup.model.lora, setup.model.quantization is not None
    matrices, others, adapted, adapter = _counted(shape, lora.r, lora.target_modules)
    half = lora.enable and precision_of(device, setup.precision) is not Precision.FP32
    number = 2 if half else 4
    parts = {"weights": int(matrices * (_NF4 if quantised else number)) + others * number}
    if setup.run is not None:
        rollout = setup.run.training.rollout
        # In fp32 the adapter is merged into copies while playing.
        merged = rollout.sampler == "own" and not half and not quantised
        parts["their copy to sample with"] = 4 * adapted if merged else 0
    if lora.enable:
        return parts | {"adapter, gradients and optimizer": _LEARNED * adapter}
    return parts | {"gradients and optimizer": (_LEARNED - 4) * (matrices + others)}


def check_memory(setup: Setup, shape: PretrainedConfig, device: torch.device, processes: int) -> Parts:
    """Reject a policy that cannot fit into memory; return the least memory of one process.

    Args:
        shape: the base's own configuration.
        device: where the policy will be.
        processes: number of processes that share the device's memory.

    Raises:
        ConfigError: with the memory of every part, and what is free.
    """
    parts, free = least_memory(setup, shape, device), free_bytes(device)
    needed = sum(parts.values())
    if free is None or needed * processes <= free:
        return parts
    several = f" in each of {processes} processes" if processes > 1 else ""
    shown = ", ".join(f"{name} {size / _GIB:.2f}" for name, size in parts.items())
    advice = (
        "model.quantization: nf4 or model.lora.enable: true, or use a smaller model.base"
        if setup.run is None
        else "finetune.method: qlora, lower training.processes, or use a smaller base_model"
    )
    raise ConfigError(
        f"the policy does not fit into the memory of this machine ({device.type}): at least {needed / _GIB:.2f} GiB "
        f"are needed{several}, {free / _GIB:.2f} GiB are free. In GiB: {shown}. Set {advice}"
    )


def check_warm_start(shape: PretrainedConfig, device: torch.device) -> None:
    """Reject a warm start that cannot fit into memory. It trains every weight in fp32.

    Args:
        shape: the base's own configuration.
        device: where it will run.

    Raises:
        ConfigError: with the memory that is needed, and what is free.
    """
    free, needed = free_bytes(device), warm_start_bytes(shape)
    if free is None or needed <= free:
        return
    raise ConfigError(
        "training.warm_start.steps: the warm start trains all weights of the base, which needs at least "
        f"{needed / _GIB:.2f} GiB ({device.type}; 16 bytes per weight), but {free / _GIB:.2f} GiB are free; set it to "
        "0 to start training from the base itself, or use a smaller base_model"
    )


def warm_start_bytes(shape: PretrainedConfig) -> int:
    """Return the least memory of a warm start."""
    return _LEARNED * sum(value.numel() for value in model_without_weights(shape).parameters())


def _counted(shape: PretrainedConfig, rank: int, targets: Collection[str]) -> tuple[int, int, int, int]:
    """Count parameters: of linear layers except the head, of everything else, of adapted layers, of the adapter."""
    model: Any = model_without_weights(shape)
    head = model.get_output_embeddings()
    linear = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    matrices = sum(layer.weight.numel() for layer in linear.values() if layer is not head)
    adapted = [layer for name, layer in linear.items() if name.rpartition(".")[2] in targets]
    return (
        matrices,
        sum(value.numel() for value in model.parameters()) - matrices,
        sum(layer.weight.numel() for layer in adapted),
        rank * sum(layer.in_features + layer.out_features for layer in adapted),
    )
