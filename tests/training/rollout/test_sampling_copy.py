"""The 16-bit sampling copy of a quantized base and its adapter: rewritten each time, and removed without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedModel, Qwen3ForCausalLM

from rc1_lib.training.base_model import disable_repacking
from rc1_lib.training.rollout.roll_out import roll_out
from rc1_lib.training.rollout.sampling_weights import SamplingCopy, adapter_delta, dequantized
from tests.training.rollout.standin import WIDE, StandInChat, sampling, starts, with_lora
from tests.training.rollout.test_against_full_forward import largest_gap

NUMBERS = [0, 8, 3, 1]
ROUNDS = 30


@pytest.fixture(scope="module")
def in_4_bits(memorized: PreTrainedModel, tmp_path_factory: pytest.TempPathFactory) -> PreTrainedModel:
    """Frozen NF4 layers with double quantization, and a non-zero adapter. Never change it."""
    folder = tmp_path_factory.mktemp("memorized")
    memorized.save_pretrained(folder)
    nf4 = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.float32,
    )  # fmt: skip
    model = with_lora(Qwen3ForCausalLM.from_pretrained(folder, quantization_config=nf4, device_map="cpu"))
    disable_repacking(model)
    return model.eval()


def adapted(model: PreTrainedModel) -> list[LoraLayer]:
    return [layer for layer in model.modules() if isinstance(layer, LoraLayer)]


def active(model: PreTrainedModel) -> list[Tensor]:
    """The weights that each adapted layer computes with inside `SamplingCopy.active`."""
    used: list[Tensor] = []

    def linear(states: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        used.append(weight)
        return states @ weight.T

    with patch.object(nn.functional, "linear", linear):
        for layer in adapted(model):
            layer(torch.zeros(1, layer.in_features))
    return used


@contextmanager
def changed(model: PreTrainedModel, size: float) -> Iterator[None]:
    """Change the adapter within this block."""
    before = {name: weight.detach().clone() for name, weight in model.named_parameters() if "lora_" in name}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name in before:
                weight += size * torch.randn(weight.shape, generator=torch.Generator().manual_seed(3))
    yield
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name in before:
                weight.copy_(before[name])


def test_copy_merges_base_and_adapter_and_leaves_no_trace(chat: StandInChat, in_4_bits: PreTrainedModel) -> None:
    model = in_4_bits
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    made = SamplingCopy(model)
    with made.active():
        played, used = roll_out(model, chat, starts(chat, NUMBERS), sampling(), WIDE), active(model)
    assert len(made) == len(adapted(model)) == 7 * 2
    for layer, weight in zip(adapted(model), used, strict=True):
        whole = dequantized(layer.get_base_layer()) + adapter_delta(layer)
        assert weight.dtype is torch.bfloat16 and torch.equal(weight, whole.to(torch.bfloat16))
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert not any("forward" in layer.__dict__ for layer in model.modules())
    # The copy has eight bits of mantissa. The layers themselves come within 1e-5 (test_against_full_forward).
    assert 1e-5 < largest_gap(model, played, 1.0) < 0.1


def test_copy_has_no_drift_after_many_adapter_updates(in_4_bits: PreTrainedModel) -> None:
    model = in_4_bits
    made = SamplingCopy(model)
    with made.active():
        used = active(model)
        first, places = [weight.clone() for weight in used], [weight.data_ptr() for weight in used]
    for number in range(ROUNDS):
        with changed(model, 0.01 * (1 + number)), made.active():
            assert not any(map(torch.equal, active(model), first))
    with made.active():
        used = active(model)
    assert all(map(torch.equal, used, first))
    assert [weight.data_ptr() for weight in used] == places
