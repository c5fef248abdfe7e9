"""The weights of a linear layer in fp32: dequantised, and with its adapter added."""

from __future__ import annotations

from typing import Any, cast

from peft.tuners.lora import LoraLayer
from torch import Tensor, nn


def in_4_bits(layer: Any) -> bool:
    """Whether a layer's weights are 4-bit weights of bitsandbytes."""
    return getattr(getattr(layer, "weight", None), "quant_state", None) is not None


def is_bare_4bit(name: str, layer: Any) -> bool:
    """Whether a layer with this name in its model has 4-bit weights and no adapter."""
    return in_4_bits(layer) and not name.endswith(".base_layer")


def base_layer_of(layer: Any) -> nn.Linear:
    """Return the layer inside an adapter, or the layer itself."""
    return cast(nn.Linear, layer.get_base_layer() if isinstance(layer, LoraLayer) else layer)


def merged_weights(layer: Any) -> Tensor:
    """Compute a layer's weights in fp32, including its adapter if enabled."""
    numbers = dequantized(base_layer_of(layer))
    return numbers + adapter_delta(layer) if isinstance(layer, LoraLayer) and not layer.disable_adapters else numbers


def dequantized(layer: Any) -> Tensor:
    """Compute the weights of a layer without an adapter, in fp32."""
    if not in_4_bits(layer):
        return cast(Tensor, layer.weight).detach().float()
    from bitsandbytes.functional import dequantize_4bit

    return dequantize_4bit(layer.weight.data, layer.weight.quant_state).float()


def adapter_delta(layer: LoraLayer) -> Tensor:
    """Compute the product of an adapter's matrices, scaled, in fp32."""
    (name,) = layer.active_adapters
    down, up = (cast(nn.Linear, part[name]).weight.detach().float() for part in (layer.lora_A, layer.lora_B))
    added: Tensor = (up @ down) * layer.scaling[name]
    return added
