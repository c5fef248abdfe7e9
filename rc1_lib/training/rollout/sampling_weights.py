"""Weights for sampling: base and adapter merged into one matrix per layer, which is faster per token.

Layers in fp32 are merged in place, and the original tensors are restored afterwards; subtracting the product again
would leave rounding errors in the base. Layers in 4 or 16 bits stay unmerged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from peft.tuners.lora import Linear, LoraLayer
from torch import Tensor, nn


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """Merge the active LoRA adapters of `model` inside the context (Hu et al. 2021).

    Only float32 weights are merged. In 16 bits the sum would round small updates away, and quantised weights cannot be
    merged. Those layers stay unmerged, which is slower but just as correct.
    """
    originals: list[tuple[Linear, Tensor, Tensor]] = []
    try:
        for module in model.modules():
            if isinstance(module, Linear) and _mergeable(module):
                weight = module.get_base_layer().weight
                assert isinstance(weight, Tensor), "a linear layer has a weight"
                originals.append((module, weight, weight.data))
                # safe_merge builds the sum in a new tensor, so the original is untouched.
                module.merge(safe_merge=True)
        yield
    finally:
        for module, weight, original in originals:
            weight.data = original
            module.merged_adapters.clear()


def _mergeable(module: Linear) -> bool:
    if module.merged or module.disable_adapters or any(module.lora_bias.values()):
        return False
    return bool(module.get_base_layer().weight.dtype is torch.float32)


# The weights of a linear layer in fp32: dequantised, and with its adapter added.


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
