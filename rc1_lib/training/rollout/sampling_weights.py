"""Weights for sampling: base and adapter merged into one matrix per layer, which is faster per token.

Layers in fp32 are merged in place, and the original tensors are restored afterwards; subtracting the product again
would leave rounding errors in the base. Layers in 4 or 16 bits stay unmerged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from peft.tuners.lora import Linear
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
