"""A policy as one plain model: its adapter added into the weights, 4-bit weights as the numbers that they stand for."""

from __future__ import annotations

from typing import cast

import torch
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import PreTrainedModel

from rc1_lib.training.base_model import load_base
from rc1_lib.training.device import Precision
from rc1_lib.training.layer_weights import stands_alone, whole_weights
from rc1_lib.training.train_config import ModelSection

_CPU = torch.device("cpu")


@torch.no_grad()
def merged_model(causal: nn.Module, section: ModelSection, precision: Precision) -> PreTrainedModel:
    """A policy without an adapter, on the CPU.

    A base that was trained on in 4 bits becomes the numbers that its layers compute with, not the published weights:
    the adapter was learned next to those.

    Args:
        causal: the policy's model, with an adapter or without; not changed.
        section: of its base.
        precision: of the weights that are made.
    """
    plain = load_base(section.model_copy(update={"quantization": None}), _CPU, Precision.FP32)
    for name, layer in causal.named_modules():
        if isinstance(layer, LoraLayer) or stands_alone(name, layer):
            cast(nn.Linear, plain.get_submodule(name)).weight.copy_(whole_weights(layer))
    return cast(PreTrainedModel, plain.to(precision.dtype))  # type: ignore[arg-type]
