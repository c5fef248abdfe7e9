"""A policy as one plain model: its adapter added into the weights, 4-bit weights as the numbers that they stand for."""

from __future__ import annotations

from typing import Any, cast

import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import PreTrainedModel

from rc1_lib.training.base_model import load_base
from rc1_lib.training.device import Precision
from rc1_lib.training.policy import Policy
from rc1_lib.training.train_config import ModelSection

_CPU = torch.device("cpu")


@torch.no_grad()
def merged_model(policy: Policy, section: ModelSection, precision: Precision) -> PreTrainedModel:
    """The policy without an adapter, on the CPU.

    A base that was trained on in 4 bits becomes the numbers that its layers compute with, not the published weights:
    the adapter was learned beside those.

    Args:
        policy: not changed.
        section: of the policy's base.
        precision: of the weights that are made.
    """
    plain = load_base(section.model_copy(update={"quantization": None}), _CPU, Precision.FP32)
    for name, layer in policy.causal.named_modules():
        if isinstance(layer, LoraLayer):
            weight = _numbers(layer.get_base_layer()) + _added(layer)
        elif _in_4_bits(layer) and not name.endswith(".base_layer"):
            weight = _numbers(layer)
        else:
            continue
        cast(nn.Linear, plain.get_submodule(name)).weight.copy_(weight)
    return cast(PreTrainedModel, plain.to(precision.dtype))  # type: ignore[arg-type]


def _added(layer: LoraLayer) -> Tensor:
    """What the adapter comes to, in fp32."""
    (name,) = layer.active_adapters
    down, up = (cast(nn.Linear, part[name]).weight.float() for part in (layer.lora_A, layer.lora_B))
    added: Tensor = ((up @ down) * layer.scaling[name]).cpu()
    return added


def _numbers(layer: Any) -> Tensor:
    if not _in_4_bits(layer):
        return cast(Tensor, layer.weight).float().cpu()
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(layer.weight.data, layer.weight.quant_state).float().cpu()


def _in_4_bits(layer: Any) -> bool:
    return getattr(getattr(layer, "weight", None), "quant_state", None) is not None
