"""The weights of a linear layer as numbers: those that 4 bits stand for, with what an adapter adds to them."""

from __future__ import annotations

from typing import Any, cast

from peft.tuners.lora import LoraLayer
from torch import Tensor, nn


def in_4_bits(layer: Any) -> bool:
    """Whether a layer's weights are packed as bitsandbytes packs them."""
    return getattr(getattr(layer, "weight", None), "quant_state", None) is not None


def stands_alone(name: str, layer: Any) -> bool:
    """Whether a layer of this name in its model is in 4 bits and has no adapter around it."""
    return in_4_bits(layer) and not name.endswith(".base_layer")


def plain_layer(layer: Any) -> nn.Linear:
    """The layer below an adapter, or itself."""
    return cast(nn.Linear, layer.get_base_layer() if isinstance(layer, LoraLayer) else layer)


def whole_weights(layer: Any) -> Tensor:
    """The weights that a layer computes with, its adapter added unless it is switched off, in fp32."""
    numbers = numbers_of(plain_layer(layer))
    return numbers + added_by(layer) if isinstance(layer, LoraLayer) and not layer.disable_adapters else numbers


def numbers_of(layer: Any) -> Tensor:
    """The weights that a layer without an adapter computes with, in fp32."""
    if not in_4_bits(layer):
        return cast(Tensor, layer.weight).detach().float()
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(layer.weight.data, layer.weight.quant_state).float()


def added_by(layer: LoraLayer) -> Tensor:
    """What the adapter of a layer comes to, in fp32."""
    (name,) = layer.active_adapters
    down, up = (cast(nn.Linear, part[name]).weight.detach().float() for part in (layer.lora_A, layer.lora_B))
    added: Tensor = (up @ down) * layer.scaling[name]
    return added
