"""LoRA weights added into the base weights while a model generates, and taken out again without a trace.

A LoRA layer left apart costs several small operations in each of its modules at every token. Merged it costs none.
Subtracting the product again would leave rounding errors in the base, so the original tensors are put back instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from peft.tuners.lora import Linear
from torch import nn


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """Merge the active LoRA adapters of `model` while the block lasts (Hu et al. 2021).

    Only float32 weights are merged: in 16 bits the sum would round away small updates, and quantised weights cannot
    take it. Those layers stay as they are, which is slower and as right.
    """
    originals: list[tuple[Linear, torch.Tensor, torch.Tensor]] = []
    try:
        for module in model.modules():
            if isinstance(module, Linear) and _mergeable(module):
                weight = module.get_base_layer().weight
                assert isinstance(weight, torch.Tensor), "a linear layer has a weight"
                originals.append((module, weight, weight.data))
                # The safe way builds the sum in a tensor of its own, which is what leaves the original untouched.
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
