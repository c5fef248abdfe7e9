"""The 16-bit sampling copy of a quantized base and its adapter: rewritten each time, and removed without a trace."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from peft.tuners.lora import LoraLayer
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedModel, Qwen3ForCausalLM

from rc1_lib.training.base_model import disable_repacking
from rc1_lib.training.layer_weights import adapter_delta, dequantized
from rc1_lib.training.rollout.roll_out import roll_out
from rc1_lib.training.rollout.sampling_weights import SamplingCopy, make_sampling_copy
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
    drifting = [weight.clone() for weight in first]
    for number in range(ROUNDS):
        with changed(model, 0.01 * (1 + number)):
            deltas = [adapter_delta(layer) for layer in adapted(model)]
            with made.active():
                assert not any(map(torch.equal, active(model), first))
        for weight, delta, layer in zip(drifting, deltas, adapted(model), strict=True):
            weight += delta - adapter_delta(layer)
            weight -= delta - adapter_delta(layer)
    with made.active():
        used = active(model)
    assert all(map(torch.equal, used, first))
    assert [weight.data_ptr() for weight in used] == places
    assert not any(map(torch.equal, drifting, first)), "adding and subtracting deltas must drift"


def test_copy_with_a_disabled_adapter_is_the_base(in_4_bits: PreTrainedModel) -> None:
    made = SamplingCopy(in_4_bits)
    layers = adapted(in_4_bits)
    for layer in layers:
        layer.enable_adapters(False)
    try:
        with made.active():
            for layer, weight in zip(layers, active(in_4_bits), strict=True):
                assert torch.equal(weight, dequantized(layer.get_base_layer()).to(torch.bfloat16))
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def test_error_during_sampling_restores_the_layers(in_4_bits: PreTrainedModel) -> None:
    with pytest.raises(ZeroDivisionError), SamplingCopy(in_4_bits).active():
        print(1 / 0)
    assert not any("forward" in layer.__dict__ for layer in in_4_bits.modules())


def test_16_bit_models_are_copied_and_32_bit_models_are_not(
    memorized: PreTrainedModel,
) -> None:
    model = with_lora(copy.deepcopy(memorized))
    assert make_sampling_copy(model, "bf16") is None
    half = model.to(torch.bfloat16)
    assert make_sampling_copy(half, "none") is None
    made = make_sampling_copy(half, "bf16")
    assert made is not None and len(made) == len(adapted(half))


def test_four_bit_layers_without_an_adapter_are_copied(in_4_bits: PreTrainedModel) -> None:
    model = copy.deepcopy(in_4_bits)
    model.model.layers[0].mlp.up_proj = model.model.layers[0].mlp.up_proj.get_base_layer()
    made = SamplingCopy(model)
    assert len(made) == 7 * 2 and len(adapted(model)) == 7 * 2 - 1
    with made.active():
        model(input_ids=torch.tensor([[1, 2, 3]]))


def test_forward_pass_uses_the_copy(in_4_bits: PreTrainedModel) -> None:
    model, ids = in_4_bits, torch.tensor([[5, 9, 2, 7]])
    made = SamplingCopy(model)
    with torch.no_grad(), made.active():
        whole = model(input_ids=ids).logits
        active(model)[3][0, 0] += 1.0
        damaged = model(input_ids=ids).logits
    assert not torch.equal(whole, damaged)
