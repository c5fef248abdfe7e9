"""Weights to sample with: base and adapter as one matrix a layer, since reading them apart costs at every token.

Layers in fp32 are merged in place, and the original tensors are put back: subtracting the product again would leave
rounding errors in the base. Of layers in 4 or 16 bits a copy in 16 bits is made. It costs two bytes a weight, allocated
once, and is written again from base and adapter before every rollout: adding an update to it and taking it out again
would round at every step, until it were another policy. What learns never sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from peft.tuners.lora import Linear, LoraLayer
from torch import Tensor, nn

from rc1_lib.training.layer_weights import in_4_bits, plain_layer, stands_alone, whole_weights

_TYPE = torch.bfloat16


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """Merge the active LoRA adapters of `model` while the block lasts (Hu et al. 2021).

    Only float32 weights are merged: in 16 bits the sum would round away small updates, and quantised weights cannot
    take it. Those layers stay as they are, which is slower and as right.
    """
    originals: list[tuple[Linear, Tensor, Tensor]] = []
    try:
        for module in model.modules():
            if isinstance(module, Linear) and _mergeable(module):
                weight = module.get_base_layer().weight
                assert isinstance(weight, Tensor), "a linear layer has a weight"
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


class SamplingCopy:
    """16-bit weights of every layer that `merged` leaves as it is: one in 4 bits, or with an adapter in 16."""

    def __init__(self, model: nn.Module) -> None:
        """Allocates the copy; its contents are not written before `standing_in`."""
        copied = {name: layer for name, layer in model.named_modules() if _is_copied(name, layer)}
        self._layers = [
            (layer, torch.empty(_shape_of(layer), dtype=_TYPE, device=plain_layer(layer).weight.device))
            for layer in copied.values()
        ]

    def __len__(self) -> int:
        """How many layers are copied."""
        return len(self._layers)

    @contextmanager
    def standing_in(self) -> Iterator[None]:
        """Inside, the model computes with what its weights and adapters come to at the beginning of the block."""
        self._write()
        try:
            for layer, weight in self._layers:
                layer.forward = _linear(weight, plain_layer(layer).bias)
            yield
        finally:
            for layer, _ in self._layers:
                layer.__dict__.pop("forward", None)

    @torch.no_grad()
    def _write(self) -> None:
        for layer, weight in self._layers:
            weight.copy_(whole_weights(layer))


def copy_to_sample_with(model: nn.Module, kind: str) -> SamplingCopy | None:
    """A model's copy as `training.rollout.sampling_copy` has it; None where none is wanted, or nothing is to be copied.

    Args:
        model: a base in 4, 16 or 32 bits, with or without an adapter.
        kind: `bf16`, or `none`.
    """
    copy = SamplingCopy(model) if kind == "bf16" else None
    return copy if copy else None


def _is_copied(name: str, layer: nn.Module) -> bool:
    if isinstance(layer, LoraLayer):
        return in_4_bits(plain_layer(layer)) or plain_layer(layer).weight.dtype is not torch.float32
    return stands_alone(name, layer)


def _shape_of(layer: nn.Module) -> tuple[int, int]:
    return plain_layer(layer).out_features, plain_layer(layer).in_features


def _linear(weight: Tensor, bias: Tensor | None) -> Callable[..., Tensor]:
    added = None if bias is None else bias.detach().to(weight.dtype)

    def forward(states: Tensor) -> Tensor:
        return nn.functional.linear(states.to(weight.dtype), weight, added).to(states.dtype)

    return forward
